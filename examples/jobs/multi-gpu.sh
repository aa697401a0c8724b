#!/bin/bash
#SBATCH --job-name=pretrain
#SBATCH --partition=gpu
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=8
#SBATCH --gres=gpu:8
#SBATCH --cpus-per-task=12
#SBATCH --time=24:00:00
# A job that waits for its slowest GPU: all of one model get the same clocks.
srun torchrun --nnodes 2 --nproc-per-node 8 pretrain.py
