#!/usr/bin/env bash
# Install the programs that some tests drive for real: MPI jobs need mpiexec and sshd, network tests ip and bwrap.
set -euo pipefail

command -v apt-get >/dev/null || { echo "no apt-get here: the tests that need other programs are skipped"; exit 0; }
wanted=()
for pair in mpiexec:openmpi-bin /usr/sbin/sshd:openssh-server ip:iproute2 bwrap:bubblewrap setpriv:util-linux; do
    command -v "${pair%%:*}" >/dev/null 2>&1 || wanted+=("${pair##*:}")
done
[ ${#wanted[@]} -eq 0 ] && exit 0
[ "$(id -u)" = 0 ] || { echo "not root: could not install ${wanted[*]}, the tests that need them are skipped"; exit 0; }
{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${wanted[@]}"; } \
    >/dev/null 2>&1 || echo "could not install ${wanted[*]}: the tests that need them are skipped"
