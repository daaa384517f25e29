#!/bin/bash
#SBATCH --job-name=plain
#SBATCH --ntasks=1
#SBATCH --time=00:10:00
#SBATCH --mem=100M

echo "plain: job $SLURM_JOB_ID named $SLURM_JOB_NAME, $SLURM_MEM_PER_NODE MB"
