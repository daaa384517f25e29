#!/bin/bash
#SBATCH -n 2 -c 3 --mem-per-cpu=10M -t 1-02:03:04
echo "per cpu: $SLURM_NTASKS tasks of $SLURM_CPUS_PER_TASK, $SLURM_MEM_PER_CPU MB for each, node ${SLURM_MEM_PER_NODE:-unset}"
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
srun bash -c 'echo "per cpu: rank $SLURM_PROCID has $OMP_NUM_THREADS threads"'
