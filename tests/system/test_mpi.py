"""The MPI job as users write it for Volcano, with the real mpiexec and the real sshd on port 22."""

from __future__ import annotations

import re

import pytest

from tests import needs
from tests.system.real_system import EXAMPLES, running_up, volcano_run

pytestmark = [
    pytest.mark.root,
    needs.ROOT,  # sshd changes to the user who logs in
    needs.MPI,
    needs.SSHD,
]


@pytest.mark.timeout(240)
def test_an_mpi_job_says_hello_from_every_worker_and_completes(tmp_path):
    with running_up(tmp_path) as up:
        ran = volcano_run(tmp_path, EXAMPLES / "mpi-hello.yaml", "--data-dir", up.data)

        assert ran.returncode == 0, ran.stdout + ran.stderr
        hellos = sorted(re.findall(r"Hello world from processor .*", up.logs("lm-mpi-job-mpimaster-0")))
        assert hellos == [
            "Hello world from processor lm-mpi-job-mpiworker-0, rank 0 out of 2 processors",
            "Hello world from processor lm-mpi-job-mpiworker-1, rank 1 out of 2 processors",
        ]
        assert all(f"lm-mpi-job-mpimaster-0 | {hello}" in ran.stdout for hello in hellos)
        assert up.phase("lm-mpi-job") == "Completed"
        assert {name: pod["status"]["phase"] for name, pod in up.pods().items()} == {
            "lm-mpi-job-mpimaster-0": "Succeeded"
        }
