#!/bin/bash
#SBATCH --job-name equals
#SBATCH   --output   equals.txt   
#SBATCH --ntasks	2
echo "equals: $SLURM_NTASKS"
