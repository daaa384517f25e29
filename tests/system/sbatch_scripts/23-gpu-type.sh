#!/bin/bash
#SBATCH --ntasks=1
#SBATCH --gres=gpu:a100:2
echo "never"
