#!/bin/sh
#SBATCH -J short -n4 -c 2 -t 5 -p default
#SBATCH -o short-%j.log
echo "short: $SLURM_NTASKS tasks of $SLURM_CPUS_PER_TASK cpus, $SLURM_CPUS_ON_NODE on the node"
