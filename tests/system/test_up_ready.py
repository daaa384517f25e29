"""What `volcano up` promises when it says that it is up, before its components are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from .real_system import JOBS, Up, wait_until

JOB = {
    "apiVersion": "batch.volcano.sh/v1alpha1",
    "kind": "Job",
    "metadata": {"name": "first"},
    "spec": {
        "minAvailable": 1,
        "tasks": [
            {
                "name": "t",
                "replicas": 1,
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "python:3", "command": ["true"]}]}},
            }
        ],
    },
}  # fmt: skip


@pytest.mark.timeout(250)
def test_the_first_job_on_a_new_data_directory_is_taken_at_once_and_runs(tmp_path: Path):
    up = Up(tmp_path, "--dashboard", "off")
    up.waits_for_components = False
    try:
        up.start()

        assert up.api.get("/readyz").status == 200
        assert up.api.create(JOBS, JOB).status == 201
        up.until_phase("first", "Completed")
        wait_until(lambda: up.api.get("/readyz/components").status == 200, "all components are ready")
    finally:
        up.clean_up()
