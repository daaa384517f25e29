#!/bin/bash
#SBATCH --job-name=fails
echo "fails: with code 7"
exit 7
