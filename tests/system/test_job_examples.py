"""The framework examples, as they are, on one real system: `volcano up`, `volcano run`, processes of this machine.

Each example's scripts check what they were given: hosts, ranks, keys, TF_CONFIG and the rest. A script that misses
something fails its job.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import needs
from tests.system.real_system import EXAMPLES, Up, running_up, volcano_run

pytestmark = [
    pytest.mark.timeout(300),
    needs.NAMESPACES,  # volumes are mounted at their paths in one
]

FRAMEWORKS = (
    "tensorflow",
    "pytorch",
    "mpi",
    "ray",
    "spark-like",
    "horovod",
    "mindspore",
    "paddlepaddle",
    "array",
    "elastic",
    "device-claim",
)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running_up(tmp_path_factory.mktemp("examples")) as running:
        yield running


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_an_example_runs_to_its_end_on_this_machine(up: Up, tmp_path: Path, name: str):
    ran = volcano_run(tmp_path, EXAMPLES / f"{name}.yaml", "--data-dir", up.data)

    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert up.phase(name) == "Completed"
    assert f"{name}-" in ran.stdout, "what the pods print is shown"
