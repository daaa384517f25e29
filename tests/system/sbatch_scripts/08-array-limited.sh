#!/bin/bash
#SBATCH -a 0-6:2%2
#SBATCH -o limited-%a.out
echo "limited: $SLURM_ARRAY_TASK_ID step $SLURM_ARRAY_TASK_STEP"
