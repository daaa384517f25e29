#!/bin/bash
#SBATCH --job-name="a name with spaces"
#SBATCH --comment='it has "quotes"'
echo "quotes: $SLURM_JOB_NAME"
