#!/bin/bash
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=appended.out
echo "append: more"
