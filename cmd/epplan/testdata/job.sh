#!/bin/sh
#SBATCH --job-name=train
#SBATCH --partition=gpu --gres=gpu:2
#SBATCH --time=1:00:00
srun train --epochs 3
