"""Slurm's habits: sbatch scripts, srun, squeue, sinfo and scancel by the names vsub, vrun, vjobs, vinfo and vcancel."""
