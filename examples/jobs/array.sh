#!/bin/bash
#SBATCH --job-name=sweep
#SBATCH --partition=gpu
#SBATCH --gres=gpu:1
#SBATCH --time=0:45:00
#SBATCH --array=0-39%8
# Each task of the array is a run of one workload: the first ones teach how it
# responds to clocks, the later ones have it easier.
srun python sweep.py --seed "$SLURM_ARRAY_TASK_ID"
