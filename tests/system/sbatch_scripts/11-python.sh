#!/usr/bin/env python3
#SBATCH --job-name=python
#SBATCH --cpus-per-task=2
import os
print("python:", os.environ["SLURM_JOB_NAME"], os.environ["SLURM_CPUS_PER_TASK"])
