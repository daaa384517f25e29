"""Which phases of jobs and pods are final."""

from __future__ import annotations

import pytest

from volcano.api.batch import FINISHED_PHASES, PHASES, STOPPED_PHASES
from volcano.api.core import Pod, PodStatus
from volcano.api.kubelet import AgentPod


def test_the_phases_of_a_job_that_are_final():
    assert {phase for phase in PHASES if phase in FINISHED_PHASES} == {"Completed", "Failed", "Terminated"}


def test_an_aborted_job_has_stopped_but_may_be_resumed():
    assert set(STOPPED_PHASES) - set(FINISHED_PHASES) == {"Aborted"}


@pytest.mark.parametrize(
    ("phase", "finished"),
    [("", False), ("Pending", False), ("Running", False), ("Unknown", False), ("Succeeded", True), ("Failed", True)],
)
def test_the_phases_of_a_pod_that_are_final(phase: str, finished: bool):
    status = PodStatus(phase=phase)

    assert (Pod(status=status).is_finished, AgentPod(status=status).is_finished) == (finished, finished)
