"""Thresholds and ports of probes."""

from __future__ import annotations

import pytest

from tests.unit.embedded.agent.kit import a_pod
from volcano.api.kubelet import Probe
from volcano.embedded.agent.runtime.probes import Threshold, port_of


def test_a_verdict_needs_enough_answers_in_a_row():
    threshold = Threshold(Probe(success_threshold=1, failure_threshold=3), verdict=True)

    assert [threshold.take(ok) for ok in (True, False, False, True, False, False, False, False)] == [
        None, None, None, None, None, None, False, None,
    ]  # fmt: skip


def test_a_port_is_found_by_number_or_name():
    pod = a_pod(containers=[{"name": "main", "image": "x", "ports": [{"name": "web", "containerPort": 80}]}])
    main = pod.spec.containers[0]

    assert port_of({"port": "web"}, main) == 80 and port_of({"port": 8080}, main) == 8080
    with pytest.raises(ValueError, match="nope"):
        port_of({"port": "nope"}, main)
