#!/bin/bash
#SBATCH --job-name=hello
#SBATCH --ntasks=2
#SBATCH --cpus-per-task=1
#SBATCH --time=00:05:00
#SBATCH --output=%x-%j.out

echo "job $SLURM_JOB_ID with $SLURM_NTASKS tasks on $SLURM_JOB_NODELIST"
srun bash -c 'echo "task $SLURM_PROCID of $SLURM_NTASKS"'
