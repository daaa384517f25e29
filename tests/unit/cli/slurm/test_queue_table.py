"""squeue's columns."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from volcano.cli.failures import Failed
from volcano.cli.slurm.queue_table import DEFAULT_FORMAT, compressed, parse_states, queue_rows, table

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def job(name: str, phase: str, reason: str = "", **labels: str) -> dict[str, Any]:
    found = {f"volcano.sh/{key.replace('_', '-')}": value for key, value in labels.items()}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": found, "creationTimestamp": "2026-01-01T11:00:00Z"},
        "spec": {"queue": "fast", "tasks": [{"replicas": 2, "template": {"spec": {}}}]},
        "status": {
            "state": {"phase": phase, "reason": reason},
            "conditions": [{"status": "Running", "lastTransitionTime": "2026-01-01T11:58:00Z"}] if phase == "Running" else [],
        },
    }  # fmt: skip


def test_running_jobs_have_their_nodes_and_waiting_ones_their_reason() -> None:
    jobs = [job("a-1", "Running", job_id="1", batch_name="a", user="me"), job("b", "Pending", "NotEnoughResources")]
    annotations = {"volcano.sh/job-name": "a-1"}
    pods = [
        {"metadata": {"namespace": "default", "annotations": annotations}, "spec": {"nodeName": node}}
        for node in ("n1", "n2")
    ]

    assert table(queue_rows(jobs, pods, NOW, each_of_array=False), DEFAULT_FORMAT) == [
        "             JOBID PARTITION                 NAME     USER ST       TIME  NODES NODELIST(REASON)",
        "                 1      fast                    a       me  R       2:00      2 n[1-2]",
        "                 b      fast                    b      N/A PD       0:00      2 (NotEnoughResources)",
    ]


def test_the_waiting_jobs_of_an_array_are_one_line_unless_each_is_wanted() -> None:
    jobs = [job(f"a-{n}", "Pending", array="5", array_index=str(n)) for n in (1, 2, 4)]

    assert table(queue_rows(jobs, [], NOW, each_of_array=False), "%i", header=False) == ["5_[1-2,4]"]
    assert table(queue_rows(jobs, [], NOW, each_of_array=True), "%i", header=False) == ["5_1", "5_2", "5_4"]


def test_unknown_letters_and_states_are_answered_with_the_known_ones() -> None:
    with pytest.raises(Failed, match="%Z is not known; there are"):
        table([], "%i %Z")
    with pytest.raises(Failed, match="did you mean RUNNING"):
        parse_states("RUNING")
    assert parse_states("pd,R") == {"PENDING", "RUNNING"}


def test_lists_of_nodes_are_put_together() -> None:
    assert compressed(["vm-0", "vm-1", "vm-3", "gpu", "x09", "x10"]) == "gpu,vm-[0-1,3],x09,x10"
