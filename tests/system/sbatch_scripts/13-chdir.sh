#!/bin/bash
#SBATCH --chdir=inside
#SBATCH --output=here.out
pwd | sed 's|.*/|chdir: |'
