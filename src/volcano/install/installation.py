"""Everything an installation consists of, in the order in which it can be applied."""

from __future__ import annotations

from collections.abc import Iterator

from volcano.admission.policies import policy_manifests, submitter_manifests
from volcano.api.meta import JSON
from volcano.api.schemas.crds import crd_manifests
from volcano.install.monitoring import monitoring_parts
from volcano.install.network import network_parts
from volcano.install.rbac import WITH_WEBHOOK, rbac_parts
from volcano.install.values import Part, Values, chosen_parts
from volcano.install.workloads import workload_parts

WITH_POLICIES = "admission.mode=policies"


def installation_parts(values: Values) -> Iterator[Part]:
    """All but the namespace and the definitions, which the chart keeps apart."""
    yield from rbac_parts(values)
    yield from workload_parts(values)
    yield from network_parts(values)
    yield from monitoring_parts(values)
    for body in policy_manifests(namespace=values.namespace):
        yield Part("policies", body, WITH_POLICIES)
    for body in submitter_manifests(values.namespace):
        yield Part("policies", body, WITH_WEBHOOK)


def installation(values: Values) -> list[JSON]:
    """The objects of a whole installation."""
    return [namespace(values), *crd_manifests(), *chosen_parts(installation_parts(values), values)]


def namespace(values: Values) -> JSON:
    enforced = {"pod-security.kubernetes.io/enforce": "restricted"}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": values.namespace, "labels": enforced}}
