"""The QoS class, by amounts: server, scheduler and agent all ask the same function."""

from __future__ import annotations

import pytest

from volcano.api.pods.quality import BEST_EFFORT, BURSTABLE, GUARANTEED, quality_of_service
from volcano.api.pods.requests import read_resources

FULL = {"cpu": "1", "memory": "1Gi"}


def of(requests: dict | None = None, limits: dict | None = None, **more) -> dict:
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


CASES = {
    "nothing stated": ({"containers": [of()]}, BEST_EFFORT),
    "only a device stated": ({"containers": [of({"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 1})]}, BEST_EFFORT),
    "zero is nothing": ({"containers": [of({"cpu": "0"}, {"memory": 0})]}, BEST_EFFORT),
    "requests alone": ({"containers": [of(FULL)]}, BURSTABLE),
    "requests equal limits": ({"containers": [of(FULL, FULL)]}, GUARANTEED),
    "equal amounts spelled otherwise": (
        {"containers": [of({"cpu": "1", "memory": "1Gi"}, {"cpu": "1000m", "memory": "1024Mi"})]},
        GUARANTEED,
    ),
    "a limit is the request that is not stated": ({"containers": [of({}, FULL)]}, GUARANTEED),
    "a request of zero is stated": ({"containers": [of({"cpu": "0"}, FULL)]}, BURSTABLE),
    "only cpu": ({"containers": [of({"cpu": 1}, {"cpu": 1})]}, BURSTABLE),
    "request below limit": ({"containers": [of({**FULL, "cpu": "500m"}, FULL)]}, BURSTABLE),
    "one of two containers states nothing": ({"containers": [of(FULL, FULL), of()]}, BURSTABLE),
    "an init container counts like the others": (
        {"containers": [of(FULL, FULL)], "initContainers": [of({"cpu": 1})]},
        BURSTABLE,
    ),
    "a guaranteed sidecar": (
        {"containers": [of(FULL, FULL)], "initContainers": [of(FULL, FULL, restartPolicy="Always")]},
        GUARANTEED,
    ),
    "the pod as a whole is looked at instead of its containers": (
        {"containers": [of()], "resources": {"requests": FULL, "limits": FULL}},
        GUARANTEED,
    ),
    "pod-level requests alone": ({"containers": [of(FULL, FULL)], "resources": {"requests": FULL}}, BURSTABLE),
    "pod-level limit of cpu alone": ({"containers": [of()], "resources": {"limits": {"cpu": 1}}}, BURSTABLE),
}


@pytest.mark.parametrize(("spec", "expected"), CASES.values(), ids=CASES)
def test_quality_of_service(spec: dict, expected: str):
    assert quality_of_service(read_resources(spec)) == expected
