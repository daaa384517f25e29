"""Kinds with a pod template: numbers that must not be negative."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.api.scheme import BUILT_IN
from volcano.embedded.apiserver.kinds.strategy_table import strategy_for

LABELS = {"a": "b"}


@pytest.mark.parametrize(
    ("plural", "restart", "field"),
    [
        ("replicationcontrollers", "Always", "replicas"),
        ("replicationcontrollers", "Always", "minReadySeconds"),
        ("deployments", "Always", "replicas"),
        ("deployments", "Always", "progressDeadlineSeconds"),
        ("statefulsets", "Always", "revisionHistoryLimit"),
        ("jobs", "Never", "parallelism"),
        ("jobs", "Never", "completions"),
        ("jobs", "Never", "backoffLimit"),
        ("jobs", "Never", "activeDeadlineSeconds"),
    ],
)
def test_negative_numbers_are_refused_at_their_field(plural: str, restart: str, field: str):
    strategy = strategy_for(next(row for row in BUILT_IN if row.plural == plural))
    container = {"name": "a", "image": "b"}
    template = {"metadata": {"labels": LABELS}, "spec": {"restartPolicy": restart, "containers": [container]}}
    selector: Any = LABELS if plural == "replicationcontrollers" else {"matchLabels": LABELS}
    good = {"metadata": {"name": "x", "uid": "u"}, "spec": {"selector": selector, "template": template, field: 0}}
    bad = {**good, "spec": {**good["spec"], field: -1}}

    assert list(strategy.validate(good)) == []
    assert [str(error) for error in strategy.validate(bad)] == [
        f"spec.{field}: Invalid value: -1: must be greater than or equal to 0"
    ]
