#!/bin/bash
#SBATCH --ntasks=1 --time=00:05:00
module purge
module load gcc/12 openmpi
echo "modules: $LOADED"
