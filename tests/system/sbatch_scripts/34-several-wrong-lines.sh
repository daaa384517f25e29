#!/bin/bash
#SBATCH --gres=gpu:a100:2
#SBATCH --cpus-per-tasks=4
#SBATCH --time=tomorrow
#SBATCH --exclusive
#SBATCH --array=9-1
#SBATCH --output="never closed
echo never
