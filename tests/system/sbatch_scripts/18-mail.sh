#!/bin/bash
#SBATCH --mail-type=END,FAIL
#SBATCH --mail-user=someone@example.org
#SBATCH --account=physics --qos=normal
echo "mail: account $SLURM_JOB_ACCOUNT"
