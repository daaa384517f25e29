#!/bin/bash
#SBATCH --array=1,5,7-8
#SBATCH --output=list-%3a.out
echo "list: $SLURM_ARRAY_TASK_ID"
