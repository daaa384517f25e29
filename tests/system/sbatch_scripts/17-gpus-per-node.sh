#!/bin/bash
#SBATCH --gpus-per-node=1 --cpus-per-gpu=2
#SBATCH --mem-per-gpu=256M
echo "gpus per node: $SLURM_GPUS_ON_NODE with $SLURM_CPUS_ON_NODE cpus and $SLURM_MEM_PER_NODE MB"
