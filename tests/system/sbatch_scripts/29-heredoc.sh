#!/bin/bash
#SBATCH -J heredoc
cat > input.$SLURM_JOB_ID <<EOF
job $SLURM_JOB_ID
#SBATCH --exclusive
EOF
cat <<'EOF' | sed 's/^/heredoc: /'
a $variable that stays
EOF
sed 's/^/heredoc: /' input.$SLURM_JOB_ID
python3 - <<'PY'
import os
print("heredoc:", os.environ["SLURM_JOB_NAME"])
PY
