#!/bin/bash
#SBATCH --job-name=train-segmenter
#SBATCH --partition=gpu
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=8
#SBATCH --time=4:00:00
# No wish: epd chooses the clocks, so that the job ends within its time limit.
srun python train.py --epochs 40
