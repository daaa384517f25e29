"""The MPI job as users write it for Volcano, with the real mpiexec and sshd: as root, and as a user who is not."""

from __future__ import annotations

import re

import pytest

from tests import needs
from tests.system.ordinary_user import ordinary_user, running_user_up
from tests.system.real_system import EXAMPLES, running_up, volcano_run

pytestmark = [needs.MPI, needs.SSHD, pytest.mark.timeout(240)]
HELLO = "Hello world from processor {}, rank {} out of 2 processors"


def hellos(log):
    return sorted(re.findall(r"Hello world from processor .*", log))


@pytest.mark.root
@needs.ROOT
def test_an_mpi_job_says_hello_from_every_worker_and_completes(tmp_path):
    with running_up(tmp_path) as up:
        ran = volcano_run(tmp_path, EXAMPLES / "mpi-hello.yaml", "--data-dir", up.data)

        assert ran.returncode == 0, ran.stdout + ran.stderr
        said = hellos(up.logs("lm-mpi-job-mpimaster-0"))
        assert said == [HELLO.format("lm-mpi-job-mpiworker-0", 0), HELLO.format("lm-mpi-job-mpiworker-1", 1)]
        assert all(f"lm-mpi-job-mpimaster-0 | {hello}" in ran.stdout for hello in said)
        assert up.phase("lm-mpi-job") == "Completed"
        assert {name: pod["status"]["phase"] for name, pod in up.pods().items()} == {
            "lm-mpi-job-mpimaster-0": "Succeeded"
        }


@needs.NAMESPACES
def test_the_same_files_work_for_an_ordinary_user_in_user_namespaces():
    with ordinary_user() as user, running_user_up(user) as up:
        ran = user.run("run", EXAMPLES / "mpi-hello.yaml", "--data-dir", up.data)
        others = [user.run("run", EXAMPLES / f"{name}.yaml", "--data-dir", up.data) for name in ("mpi", "horovod")]

        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert hellos(up.logs("lm-mpi-job-mpimaster-0")) == [
            HELLO.format("lm-mpi-job-mpiworker-0", 0),
            HELLO.format("lm-mpi-job-mpiworker-1", 1),
        ]
        assert [each.returncode for each in others] == [0, 0], [each.stdout + each.stderr for each in others]
        assert "MissingCapability" not in reasons(up)
        assert "missing: CAP_NET_ADMIN" in "".join(up.output)


@pytest.mark.root
@needs.ROOT
def test_without_namespaces_mpi_still_runs_and_each_pod_says_what_is_missing():
    with ordinary_user() as user, running_user_up(user, namespaces=False) as up:
        ran = user.run("run", EXAMPLES / "mpi-hello.yaml", "--data-dir", up.data)

        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert len(hellos(up.logs("lm-mpi-job-mpimaster-0"))) == 2
        assert "Permission denied" not in ran.stdout
        assert "CAP_SYS_ADMIN" in reasons(up)["MissingCapability"]
        assert "missing: CAP_SYS_ADMIN, or user namespaces" in "".join(up.output)


def reasons(up):
    return {each["reason"]: each["message"] for each in up.api.get("/api/v1/namespaces/default/events").body["items"]}
