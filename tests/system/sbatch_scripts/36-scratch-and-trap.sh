#!/usr/bin/env bash

# Works in a folder of its own and copies its results back, whatever happens.
#SBATCH --job-name    scratch
#SBATCH --output      %x-%j.log
scratch=$(mktemp -d)
trap 'cp "$scratch"/result* "$SLURM_SUBMIT_DIR"/; rm -rf "$scratch"; echo "scratch: cleaned"' EXIT
cd "$scratch" || exit 1
echo "$SLURM_JOB_ID" > "result-$SLURM_JOB_ID"
echo "scratch: from ${SLURM_SUBMIT_DIR##*/} by $SLURM_JOB_USER"
[ -n "$SLURM_JOB_PARTITION" ] && echo "scratch: in $SLURM_JOB_PARTITION"
exit 0
