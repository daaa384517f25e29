#!/bin/bash -l
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=3
#SBATCH --gpus-per-node=1
#SBATCH --hint=nomultithread
set -euo pipefail
exec > result.txt  # what the profile of a login shell prints is not in it
for i in 1 2 3; do
    srun --exclusive -N1 -n1 -c1 --mem=50M bash -c "echo parallel: step $i" &
done
wait
srun -n 2 --output=step_%j_%t.txt bash -c 'echo "parallel: rank $SLURM_PROCID"'
cat step_${SLURM_JOB_ID}_0.txt step_${SLURM_JOB_ID}_1.txt
