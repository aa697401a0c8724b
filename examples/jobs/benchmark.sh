#!/bin/bash
#SBATCH --job-name=benchmark
#SBATCH --partition=gpu
#SBATCH --gres=gpu:1
#SBATCH --time=0:30:00
#SBATCH --comment="epplan:fixed=1087"
# Core clock 1087 MHz throughout, so that runs can be compared. With a memory
# clock, too: epplan:fixed=1087,877.
srun ./bench --repeat 10
