#!/bin/bash
#SBATCH --job-name=misspelt
#SBATCH --cpu-per-task=4
#SBATCH --time=tomorrow
echo "never"
