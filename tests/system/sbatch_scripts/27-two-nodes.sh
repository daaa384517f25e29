#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks=4
echo "nodes: $SLURM_JOB_NUM_NODES with $SLURM_TASKS_PER_NODE tasks"
srun --label bash -c 'echo "on node $SLURM_NODEID"'
scontrol show hostnames "$SLURM_JOB_NODELIST" | wc -l | sed 's/ *//; s/^/hosts: /'
