#!/bin/bash
#SBATCH --array=1-100:25%2
#SBATCH -o logs/%x_%A_%a.out -e logs/%x_%A_%a.err
#SBATCH -J stepped
echo "stepped: $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_TASK_COUNT, $SLURM_ARRAY_TASK_MIN to $SLURM_ARRAY_TASK_MAX by $SLURM_ARRAY_TASK_STEP"
echo "stepped: error" >&2
