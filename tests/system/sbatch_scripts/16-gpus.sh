#!/bin/bash
#SBATCH --gres=gpu:2
#SBATCH --mem=1G
#SBATCH --time=1-00:00:00
echo "gpus: $SLURM_GPUS_ON_NODE"
