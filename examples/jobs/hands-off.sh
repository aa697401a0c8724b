#!/bin/bash
#SBATCH --job-name=acceptance-test
#SBATCH --partition=gpu
#SBATCH --gres=gpu:4
#SBATCH --time=1:00:00
#SBATCH --comment="ticket 4711; epplan:off"
# Default clocks, and the job is in no comparison. What else is in the comment
# stays as it is.
srun ./acceptance
