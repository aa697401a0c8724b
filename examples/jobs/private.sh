#!/bin/bash
#SBATCH --job-name=thesis
#SBATCH --partition=gpu
#SBATCH --gres=gpu:1
#SBATCH --time=8:00:00
#SBATCH --comment="epplan:nocode"
# Its source code isn't looked at for predictions.
srun python thesis.py
