"""MPI: mpi4py in two workers that Open MPI reaches over ssh."""

from tests.frameworks.framework import Framework

FRAMEWORK = Framework("mpi4py", megabytes=30, programs=("mpiexec=openmpi-bin", "/usr/sbin/sshd=openssh-server"))
