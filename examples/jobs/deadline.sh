#!/bin/bash
#SBATCH --job-name=render-figures
#SBATCH --partition=gpu
#SBATCH --gres=gpu:1
#SBATCH --time=2:00:00
#SBATCH --comment="epplan:deadline=18:00"
# Done by six: among the user's own jobs it goes first, and no clock is chosen that
# would make it late. Also =+3h, or =2026-12-24T18:00:00Z.
srun python render.py --all
