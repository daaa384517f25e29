#!/bin/bash
#SBATCH --ntasks=1

set -e
#SBATCH --ntasks=99
#SBATCH --no-such-option
echo "after: $SLURM_NTASKS"
