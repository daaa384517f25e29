"""What runs in the pods of a batch job: the script with its output files, and srun and scontrol for its commands.

POSIX shell, since it runs in any image.
"""

from __future__ import annotations

from typing import Final

SRUN: Final = r"""#!/bin/sh
# Starts the tasks of a step: in this pod, and through ssh in the other pods of the job.
tasks=${SLURM_NTASKS:-1} label= output= error=
while [ $# -gt 0 ]; do
  case $1 in
    -n|--ntasks) tasks=$2; shift 2 ;;
    -n*) tasks=${1#-n}; shift ;;
    --ntasks=*) tasks=${1#*=}; shift ;;
    -l|--label) label=1; shift ;;
    -o|--output) output=$2; shift 2 ;;
    -e|--error) error=$2; shift 2 ;;
    -o?*) output=${1#-o}; shift ;;
    -e?*) error=${1#-e}; shift ;;
    --output=*) output=${1#*=}; shift ;;
    --error=*) error=${1#*=}; shift ;;
    -i*|--input|--input=*) echo "srun: $1 is not supported in a step: use the shell's <" >&2; exit 2 ;;
    --multi-prog|--pty|--het-group*) echo "srun: $1 is not supported in a step of a batch job" >&2; exit 2 ;;
    -N|-c|-p|-t|-J|-w|-x|-C|-m|--nodes|--cpus-per-task|--partition|--time|--job-name|--nodelist|--exclude|--constraint\
|--distribution|--mem|--gres|--gpus|--mpi|--cpu-bind|--ntasks-per-node|--mem-per-cpu|--gpus-per-task|--kill-on-bad-exit)
      shift 2 ;;
    --) shift; break ;;
    -*) shift ;;
    *) break ;;
  esac
done
[ $# -gt 0 ] || { echo "srun: no command" >&2; exit 1; }
hosts=$(echo "${SLURM_JOB_NODELIST:-localhost}" | tr , ' ')
count=0; for host in $hosts; do count=$((count + 1)); done
each=$(( (tasks + count - 1) / count ))
for word in "$@"; do
  [ "$word" != : ] || { echo "srun: a step of several programs (:) is not supported" >&2; exit 2; }
done
place() {  # the name of a task's file; a step without %t has one file for all tasks
  printf '%s' "$1" | sed "s/%t/$rank/g; s/%n/$node/g; s/%N/$host/g; s/%s/${SLURM_STEP_ID:-0}/g; s/%[jJ]/$SLURM_JOB_ID/g
s/%A/${SLURM_ARRAY_JOB_ID:-$SLURM_JOB_ID}/g; s/%a/${SLURM_ARRAY_TASK_ID:-4294967294}/g; s/%%/%/g"
}
for file in "$output" "$error"; do  # tasks add to a common file, which is empty at first
  case $file in ''|none|*%[tnN]*) ;; *) : > "$(rank=0 node=0 host= place "$file")" || exit 1 ;; esac
done
quoted=; for word in "$@"; do
  quoted="$quoted '$(printf '%s' "$word" | sed "s/'/'\\\\''/g")'"
done
export SLURM_STEP_NUM_TASKS="$tasks" SLURM_NTASKS="$tasks" SLURM_STEP_ID="${SLURM_STEP_ID:-0}"
rank=0 node=0 pids=
for host in $hosts; do
  here=0
  while [ $here -lt $each ] && [ $rank -lt "$tasks" ]; do
    (
      export SLURM_PROCID=$rank SLURM_LOCALID=$here SLURM_NODEID=$node
      [ "$output" != none ] || output=/dev/null
      [ "$error" != none ] || error=/dev/null
      if [ -n "$output" ]; then exec >> "$(place "$output")" || exit 1; fi
      if [ -n "$error" ]; then exec 2>> "$(place "$error")" || exit 1; elif [ -n "$output" ]; then exec 2>&1; fi
      if [ $node -eq 0 ]; then
        if [ -n "$label" ]; then "$@" | sed "s/^/$rank: /"; else exec "$@"; fi
      else
        settings=$(env | sed -n "s/'/'\\\\''/g; s/^\(SLURM_[A-Z_]*\)=\(.*\)$/\1='\2'/p" | tr '\n' ' ')
        remote="cd '$PWD' 2>/dev/null; export SLURMD_NODENAME='$host' $settings; exec $quoted"
        tries=0  # a node's sshd may have started later than this pod
        until ssh -q -o ConnectTimeout=5 "$host" true; do
          tries=$((tries + 1))
          [ $tries -lt 100 ] || { echo "srun: $host cannot be reached by ssh" >&2; exit 1; }
          sleep 0.2
        done
        if [ -n "$label" ]; then ssh -q "$host" "$remote" | sed "s/^/$rank: /"; else exec ssh -q "$host" "$remote"; fi
      fi
    ) &
    pids="$pids $!" rank=$((rank + 1)) here=$((here + 1))
  done
  node=$((node + 1))
done
worst=0
for pid in $pids; do
  wait "$pid" || { code=$?; [ $code -gt $worst ] && worst=$code; }
done
exit $worst
"""

SCONTROL: Final = r"""#!/bin/sh
# `scontrol show hostnames [LIST]`, which scripts of several nodes ask for.
case "$1 $2" in
  "show hostnames"|"show hostname") echo "${3:-$SLURM_JOB_NODELIST}" | tr , '\n' ;;
  *) echo "scontrol: only 'show hostnames' is known in a job" >&2; exit 1 ;;
esac
"""

BATCH: Final = r"""
tools=$(mktemp -d /tmp/vsub.XXXXXX) || exit 1
mkdir "$tools/bin"
printf '%s' "$VSUB_SCRIPT" > "$tools/slurm_script"
printf '%s' "$VSUB_SRUN" > "$tools/bin/srun"
printf '%s' "$VSUB_SCONTROL" > "$tools/bin/scontrol"
chmod -R u+rwx,go-rwx "$tools"
cd "$VSUB_CHDIR" || { echo "vsub: $VSUB_CHDIR cannot be entered in the pod" >&2; exit 1; }
output=$VSUB_OUTPUT error=$VSUB_ERROR input=$VSUB_INPUT append=$VSUB_APPEND
unset VSUB_SCRIPT VSUB_SRUN VSUB_SCONTROL VSUB_CHDIR VSUB_OUTPUT VSUB_ERROR VSUB_INPUT VSUB_APPEND
PATH="$tools/bin:$PATH" SLURMD_NODENAME=$(hostname)
export PATH SLURMD_NODENAME
for file in "$output" "$error"; do
  [ -n "$file" ] || continue
  mkdir -p "$(dirname "$file")" || exit 1
  if [ -n "$append" ]; then : >> "$file"; else : > "$file"; fi || exit 1
done
mkfifo "$tools/out" || exit 1
tee -a "$output" < "$tools/out" & readers=$!
to=$tools/out
if [ -n "$error" ]; then
  to=$tools/err
  mkfifo "$to" || exit 1
  tee -a "$error" < "$to" >&2 & readers="$readers $!"
fi
set -- "$tools/slurm_script" "$@"
count=${VSUB_FUNCTIONS:-0}
while [ "$count" -gt 0 ]; do  # functions of the submitting shell get their names back, which only env can give
  count=$((count - 1))
  eval "set -- \"\$VSUB_FUNCTION_$count\" \"\$@\"; unset VSUB_FUNCTION_$count"
done
unset VSUB_FUNCTIONS
for name in srun scontrol; do  # a login shell (#!/bin/bash -l) sets PATH anew, but keeps functions
  set -- "BASH_FUNC_$name%%=() { $tools/bin/$name \"\$@\"; }" "$@"
done
set -- env "$@"
if [ "$to" = "$tools/out" ]; then
  "$@" < "$input" > "$tools/out" 2>&1 &
else
  "$@" < "$input" > "$tools/out" 2> "$to" &
fi
child=$!
trap 'kill -TERM "$child" 2>/dev/null' TERM INT
wait "$child"; code=$?
while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
( sleep 2; kill $readers ) 2>/dev/null &  # a process that the script left may hold its output open
wait $readers
rm -rf "$tools"
exit "$code"
"""

OTHER_NODE: Final = r"""
daemon=$(command -v sshd || ls /usr/sbin/sshd /sbin/sshd 2>/dev/null | head -n 1)
[ -n "$daemon" ] || { echo "vsub: a job of several nodes needs sshd in its image" >&2; exit 1; }
mkdir -p /run/sshd 2>/dev/null
exec "$daemon" -D -e
"""


def literal(text: str) -> str:
    """Text as a pod's field: Kubernetes would expand $(NAME) and $$ in it."""
    return text.replace("$", "$$")
