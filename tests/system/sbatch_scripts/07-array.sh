#!/bin/bash
#SBATCH --job-name=array
#SBATCH --array=1-3
#SBATCH --output=array_%A_%a.out
echo "array: task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT ($SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX)"
