#!/bin/bash
#SBATCH --export=NONE
echo "export: [${VSUB_TEST_COLOUR-unset}] ${SLURM_JOB_ID:+has an id}"
