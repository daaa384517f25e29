#!/bin/bash
#SBATCH --ntasks=1 --mem=1G
#SBATCH hetjob
#SBATCH --ntasks=8 --gres=gpu:1
srun --het-group=0 ./first : --het-group=1 ./second
