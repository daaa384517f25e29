"""HorizontalPodAutoscalers in both versions."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from volcano.api.scheme import BUILT_IN
from volcano.embedded.apiserver.kinds.strategy_table import strategy_for

V1, V2 = (
    strategy_for(next(row for row in BUILT_IN if row.api_version == f"autoscaling/{version}"))
    for version in ("v1", "v2")
)
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}


def stored(**spec: Any) -> Any:
    body = {"maxReplicas": 3, "minReplicas": 1, "scaleTargetRef": TARGET, "metrics": [CPU], **spec}
    return {"apiVersion": "autoscaling/v2", "metadata": {"name": "web"}, "spec": body}


def test_v1_shows_the_target_of_cpu():
    shown = V1.from_stored(stored())
    assert shown["spec"] == {
        "maxReplicas": 3,
        "minReplicas": 1,
        "scaleTargetRef": TARGET,
        "targetCPUUtilizationPercentage": 50,
    }
    assert (shown["apiVersion"], V1.has_stored_form, V2.has_stored_form) == ("autoscaling/v1", False, True)


def test_what_v1_has_no_field_for_survives_a_write_through_v1():
    original = stored(metrics=[CPU, MEMORY], behavior={"scaleDown": {"stabilizationWindowSeconds": 60}})
    original["status"] = {
        "currentReplicas": 2,
        "conditions": [{"type": "AbleToScale", "status": "True"}],
        "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 40}}}],
    }

    shown = V1.from_stored(copy.deepcopy(original))

    assert shown["status"]["currentCPUUtilizationPercentage"] == 40
    assert "autoscaling.alpha.kubernetes.io/metrics" in shown["metadata"]["annotations"]
    assert V1.to_stored(shown) == original


def test_v1_without_a_target_aims_at_the_default():
    body = {"metadata": {"name": "web"}, "spec": {"maxReplicas": 3, "scaleTargetRef": TARGET}}
    assert V1.to_stored(body)["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80


def test_defaults_fill_in_what_is_missing():
    body = stored(metrics=[], behavior={"scaleUp": {"selectPolicy": "Min"}})
    del body["spec"]["minReplicas"]

    V2.apply_defaults(body)

    spec = body["spec"]
    assert spec["minReplicas"] == 1
    assert spec["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
    assert spec["behavior"]["scaleUp"]["selectPolicy"] == "Min"
    assert len(spec["behavior"]["scaleUp"]["policies"]) == 2
    assert spec["behavior"]["scaleDown"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 15}]


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"minReplicas": 0}, "spec.minReplicas"),
        ({"minReplicas": 4}, "spec.maxReplicas"),
        ({"maxReplicas": 0, "minReplicas": None}, "spec.maxReplicas"),
        ({"scaleTargetRef": {"kind": "Deployment"}}, "spec.scaleTargetRef.name"),
        ({"scaleTargetRef": {"kind": "a/b", "name": "x"}}, "spec.scaleTargetRef.kind"),
        ({"metrics": [{}]}, "spec.metrics[0].type"),
        ({"metrics": [{"type": "Resource"}]}, "spec.metrics[0].resource"),
        ({"metrics": [{"type": "Odd"}]}, "spec.metrics[0].type"),
        ({"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization"}}}]},
         "spec.metrics[0].resource.target.averageUtilization"),
        ({"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "AverageValue",
                                                                                 "averageValue": "-1"}}}]},
         "spec.metrics[0].resource.target.averageValue"),
        ({"metrics": [{"type": "ContainerResource", "containerResource": CPU["resource"]}]},
         "spec.metrics[0].containerResource.container"),
        ({"behavior": {"scaleUp": {"selectPolicy": "Max", "policies": []}}}, "spec.behavior.scaleUp.policies"),
        ({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 3601,
                                     "policies": [{"type": "Pods", "value": 1, "periodSeconds": 1}]}}},
         "spec.behavior.scaleDown.stabilizationWindowSeconds"),
        ({"behavior": {"scaleDown": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}}},
         "spec.behavior.scaleDown.policies[0].periodSeconds"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_be_is_named(spec, path):
    assert path in [each.path for each in V2.validate(stored(**spec))]


def test_a_good_one_is_accepted_in_both_versions():
    assert V2.validate(stored()) == []
    assert V1.validate(V1.from_stored(stored())) == []
