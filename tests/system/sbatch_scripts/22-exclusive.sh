#!/bin/bash
#SBATCH --job-name=exclusive
#SBATCH --ntasks=1
#SBATCH --exclusive
echo "never"
