#!/bin/bash
#VSUB --job-name=vsub-lines
#VSUB --ntasks-per-node=2 --nodes=1
echo "vsub: $SLURM_JOB_NAME $SLURM_NTASKS $SLURM_TASKS_PER_NODE"
