"""Admission without a webhook: ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings.

They cover what a policy can decide from one object alone, with the same words. Validating rules are in policy_rules.py,
mutations below; `volcano manifests policies` prints all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from volcano.admission import policy_rules as rules
from volcano.admission.policy_rules import Rule
from volcano.api import batch, core, flow, scheduling, topology
from volcano.api.meta import JSON, Resource
from volcano.api.scheme import resource_type

GROUP: Final = "admissionregistration.k8s.io"
VALIDATING: Final = f"{GROUP}/v1"
MUTATING: Final = "v1"
"""Since Kubernetes 1.36; 1.34 and 1.35 serve v1beta1, where it is switched on."""


def policy_manifests(mutating_version: str = MUTATING) -> list[JSON]:
    """Every policy, each followed by its binding."""
    policies = (*_validations(), *_mutations(f"{GROUP}/{mutating_version}"))
    return [manifest for policy in policies for manifest in (policy, _binding(policy))]


# -- validation ---------------------------------------------------------------------------------------------------
def _validations() -> list[JSON]:
    return [
        _validation("job", batch.Job, rules.JOB_RULES, rules.JOB_VARIABLES, ("CREATE", "UPDATE")),
        _validation(
            "queue", scheduling.Queue, rules.QUEUE_RULES, rules.QUEUE_VARIABLES, ("CREATE", "UPDATE", "DELETE")
        ),
        _validation("pod", core.Pod, rules.POD_RULES, rules.POD_VARIABLES, ("CREATE",), condition=rules.POD_CONDITION),
        _validation("podgroup", scheduling.PodGroup, (Rule("true", "never said"),), {}, ("CREATE",)),
        _validation(
            "hypernode", topology.HyperNode, rules.HYPERNODE_RULES, rules.HYPERNODE_VARIABLES, ("CREATE", "UPDATE")
        ),
        _validation("jobflow", flow.JobFlow, rules.JOBFLOW_RULES, rules.JOBFLOW_VARIABLES, ("CREATE", "UPDATE")),
    ]


def _validation(
    name: str,
    reader: type[Resource],
    checks: Sequence[Rule],
    variables: Mapping[str, str],
    operations: Sequence[str],
    *,
    condition: str = "",
) -> JSON:
    spec: JSON = {"failurePolicy": "Fail", "matchConstraints": _constraints(reader, operations)}
    if condition:
        spec["matchConditions"] = [{"name": "is-ours", "expression": condition}]
    if variables:
        spec["variables"] = _variables(variables)
    spec["validations"] = [{"expression": rule.expression, "message": rule.message} for rule in checks]
    return _manifest(VALIDATING, "ValidatingAdmissionPolicy", f"{name}-validation-policy", spec)


# -- mutation -----------------------------------------------------------------------------------------------------
_PLUGINS: Final = "has(object.spec.plugins) && ['tensorflow', 'mpi', 'pytorch'].exists(p, p in object.spec.plugins)"
_HIERARCHY: Final = "volcano.sh/hierarchy"
_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
_NAMESPACE_QUEUE: Final = "scheduling.volcano.sh/queue-name"
_GROUP: Final = "volcano.sh/resource-group"

JOB_MUTATIONS: Final = (
    ("!has(object.spec.queue) || object.spec.queue == ''", "/spec/queue", "'default'"),
    ("!has(object.spec.schedulerName) || object.spec.schedulerName == ''", "/spec/schedulerName", "'volcano'"),
    ("!has(object.spec.maxRetry) || object.spec.maxRetry == 0", "/spec/maxRetry", "3"),
    (
        "has(object.spec.tasks) && (!has(object.spec.minAvailable) || object.spec.minAvailable == 0)",
        "/spec/minAvailable",
        "object.spec.tasks.map(t, has(t.minAvailable) ? t.minAvailable : (has(t.replicas) ? t.replicas : 0)).sum()",
    ),
    (f"{_PLUGINS} && !('svc' in object.spec.plugins)", "/spec/plugins/svc", "[]"),
    (
        "has(object.spec.plugins) && 'mpi' in object.spec.plugins && !('ssh' in object.spec.plugins)",
        "/spec/plugins/ssh",
        "[]",
    ),
)
_HAS_HIERARCHY: Final = (
    f"has(object.metadata.annotations) && '{_HIERARCHY}' in object.metadata.annotations "
    f"&& '{_WEIGHTS}' in object.metadata.annotations && object.metadata.annotations['{_HIERARCHY}'] != '' "
    f"&& object.metadata.annotations['{_WEIGHTS}'] != ''"
)
QUEUE_MUTATIONS: Final = (
    (
        f"{_HAS_HIERARCHY} && !object.metadata.annotations['{_HIERARCHY}'].startsWith('root')",
        f"/metadata/annotations/{_WEIGHTS.replace('/', '~1')}",
        f"'1/' + object.metadata.annotations['{_WEIGHTS}']",
    ),
    (
        f"{_HAS_HIERARCHY} && !object.metadata.annotations['{_HIERARCHY}'].startsWith('root')",
        f"/metadata/annotations/{_HIERARCHY.replace('/', '~1')}",
        f"'root/' + object.metadata.annotations['{_HIERARCHY}']",
    ),
    ("!has(object.spec.reclaimable)", "/spec/reclaimable", "true"),
    ("!has(object.spec.weight) || object.spec.weight == 0", "/spec/weight", "1"),
)
"""The weights first: they are only touched while the path still lacks its root."""

_IN_GROUP: Final = (
    f"has(object.metadata.annotations) && '{_GROUP}' in object.metadata.annotations "
    f"&& object.metadata.annotations['{_GROUP}'] == 'default'"
)
_WITHOUT_GROUP: Final = f"!(has(object.metadata.annotations) && '{_GROUP}' in object.metadata.annotations)"
_TOLERATION: Final = "{'key': 'volcano.sh/node-group', 'operator': 'Equal', 'value': 'compute', 'effect': 'NoSchedule'}"
POD_MUTATIONS: Final = (
    (
        f"({_IN_GROUP}) || ({_WITHOUT_GROUP} && request.namespace == 'volcano-system')",
        "/spec/schedulerName",
        "'volcano'",
    ),
    (f"{_IN_GROUP} && !has(object.spec.nodeSelector)", "/spec/nodeSelector", "{'volcano.sh/node-group': 'compute'}"),
    (f"{_IN_GROUP} && has(object.spec.nodeSelector)", "/spec/nodeSelector/volcano.sh~1node-group", "'compute'"),
    (f"{_IN_GROUP} && !has(object.spec.tolerations)", "/spec/tolerations", f"[{_TOLERATION}]"),
    (
        f"{_IN_GROUP} && has(object.spec.tolerations) && "
        "!object.spec.tolerations.exists(t, has(t.key) && t.key == 'volcano.sh/node-group')",
        "/spec/tolerations/-",
        _TOLERATION,
    ),
)
PODGROUP_MUTATIONS: Final = (
    (
        "(!has(object.spec.queue) || object.spec.queue == 'default') && has(namespaceObject.metadata.annotations) "
        f"&& '{_NAMESPACE_QUEUE}' in namespaceObject.metadata.annotations",
        "/spec/queue",
        f"namespaceObject.metadata.annotations['{_NAMESPACE_QUEUE}']",
    ),
)

Mutations = Sequence[tuple[str, str, str]]


def _mutations(version: str) -> list[JSON]:
    return [
        _mutation("job", batch.Job, JOB_MUTATIONS, version),
        _mutation("queue", scheduling.Queue, QUEUE_MUTATIONS, version),
        _mutation("pod", core.Pod, POD_MUTATIONS, version),
        _mutation("podgroup", scheduling.PodGroup, PODGROUP_MUTATIONS, version),
    ]


def _mutation(name: str, reader: type[Resource], mutations: Mutations, version: str) -> JSON:
    """Each mutation sees what the ones before it made."""
    spec: JSON = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": _constraints(reader, ("CREATE",)),
        "mutations": [
            {
                "patchType": "JSONPatch",
                "jsonPatch": {
                    "expression": f"{condition} ? [JSONPatch{{op: 'add', path: '{path}', value: {value}}}] : []"
                },
            }
            for condition, path, value in mutations
        ],
    }
    return _manifest(version, "MutatingAdmissionPolicy", f"volcano-{name}-mutation-policy", spec)


# -- what both have -----------------------------------------------------------------------------------------------
def _constraints(reader: type[Resource], operations: Sequence[str]) -> JSON:
    row = resource_type(reader)
    rule = {
        "apiGroups": [row.group],
        "apiVersions": [row.version],
        "operations": list(operations),
        "resources": [row.plural],
    }
    return {"resourceRules": [rule]}


def _variables(variables: Mapping[str, str]) -> list[JSON]:
    return [{"name": name, "expression": expression} for name, expression in variables.items()]


def _binding(policy: JSON) -> JSON:
    name: str = policy["metadata"]["name"]
    spec: JSON = {"policyName": name}
    if policy["kind"] == "ValidatingAdmissionPolicy":
        return _manifest(
            VALIDATING, "ValidatingAdmissionPolicyBinding", f"{name}-binding", {**spec, "validationActions": ["Deny"]}
        )
    binding = f"{name.removesuffix('-policy')}-binding"
    return _manifest(policy["apiVersion"], "MutatingAdmissionPolicyBinding", binding, spec)


def _manifest(api_version: str, kind: str, name: str, spec: JSON) -> JSON:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}
