#!/bin/bash
#SBATCH --licenses=matlab:1
#SBATCH --ntasks=1
#SBATCH --begin=16:00
#SBATCH --signal=B:USR1@60
echo "never"
