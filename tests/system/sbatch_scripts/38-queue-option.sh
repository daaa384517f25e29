#!/bin/bash
#VSUB --queue=default
#SBATCH --account physics -q long --mail-type ALL
#SBATCH -N 1-1 --tasks-per-node 2 --cpu-bind=cores
echo "queue: $SLURM_JOB_PARTITION with $SLURM_TASKS_PER_NODE tasks"
