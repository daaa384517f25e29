#!/bin/bash
#SBATCH --ntasks=3 --cpus-per-task=1
srun bash -c 'echo "step rank $SLURM_PROCID of $SLURM_NTASKS"'
srun --ntasks=1 --exclusive echo "step alone"
srun -n 2 --label echo "labelled"
