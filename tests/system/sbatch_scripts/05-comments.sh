#!/bin/bash
# A comment before the options
#SBATCH --ntasks=2   # two of them, don't change
##SBATCH --ntasks=64
# SBATCH --ntasks=65
#SBATCHX --ntasks=66

#SBATCH --cpus-per-task=1
echo "comments: $SLURM_NTASKS"
