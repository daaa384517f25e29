"""Admission without a webhook: ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings.

They cover what a policy can decide from one object alone, with the same words. Rules are in policy_rules.py,
policy_job_rules.py and policy_submitters.py, what is filled in in policy_mutations.py; `volcano manifests policies`
prints all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from volcano.admission import policy_job_rules as job_rules
from volcano.admission import policy_mutations as mutations
from volcano.admission import policy_rules as rules
from volcano.admission.policy_mutations import Mutation
from volcano.admission.policy_rules import Rule, listed
from volcano.admission.policy_submitters import CONTROLLERS, SUBMITTER_MUTATIONS, SUBMITTER_RULES
from volcano.admission.review import controller_users
from volcano.admission.submitters import SUBMITTED
from volcano.api import batch, core, flow, scheduling, topology
from volcano.api.meta import JSON, Resource
from volcano.api.scheme import resource_type

GROUP: Final = "admissionregistration.k8s.io"
VALIDATING: Final = f"{GROUP}/v1"
MUTATING: Final = "v1"
"""Since Kubernetes 1.36; 1.34 and 1.35 serve v1beta1, where it is switched on."""


def policy_manifests(mutating_version: str = MUTATING, *, namespace: str = "") -> list[JSON]:
    """Every policy, each followed by its binding; the namespace is that of the installation, if it is not the usual."""
    policies = (*_validations(), *_mutations(f"{GROUP}/{mutating_version}", namespace))
    return [*_bound(policies), *submitter_manifests(namespace)]


def submitter_manifests(namespace: str = "") -> list[JSON]:
    """The policy that keeps who submitted an object; installed beside webhooks too, which do not see every write."""
    users = {CONTROLLERS: listed(controller_users(namespace))}
    return _bound([_validation("submitter", SUBMITTED, SUBMITTER_RULES, users, ("CREATE", "UPDATE"))])


def _bound(policies: Iterable[JSON]) -> list[JSON]:
    return [manifest for policy in policies for manifest in (policy, _binding(policy))]


# -- validation ---------------------------------------------------------------------------------------------------
def _validations() -> list[JSON]:
    written, deleted = ("CREATE", "UPDATE"), ("CREATE", "UPDATE", "DELETE")
    return [
        _validation("job", batch.Job, job_rules.JOB_RULES, job_rules.JOB_VARIABLES, written),
        _validation("queue", scheduling.Queue, rules.QUEUE_RULES, rules.QUEUE_VARIABLES, deleted),
        _validation("pod", core.Pod, rules.POD_RULES, rules.POD_VARIABLES, ("CREATE",), condition=rules.POD_CONDITION),
        _validation("podgroup", scheduling.PodGroup, rules.PODGROUP_RULES, {}, ("CREATE",)),
        _validation("hypernode", topology.HyperNode, rules.HYPERNODE_RULES, rules.HYPERNODE_VARIABLES, written),
        _validation("jobflow", flow.JobFlow, rules.JOBFLOW_RULES, rules.JOBFLOW_VARIABLES, written),
        _validation("cronjob", batch.CronJob, rules.CRONJOB_RULES, rules.CRONJOB_VARIABLES, written),
    ]


def _validation(
    name: str,
    reader: type[Resource] | Sequence[type[Resource]],
    checks: Sequence[Rule],
    variables: Mapping[str, str],
    operations: Sequence[str],
    *,
    condition: str = "",
) -> JSON:
    spec: JSON = {"failurePolicy": "Fail", "matchConstraints": _constraints(_several(reader), operations)}
    if condition:
        spec["matchConditions"] = [{"name": "is-ours", "expression": condition}]
    if variables:
        spec["variables"] = _variables(variables)
    spec["validations"] = [{"expression": rule.expression, "message": rule.message} for rule in checks]
    return _manifest(VALIDATING, "ValidatingAdmissionPolicy", f"{name}-validation-policy", spec)


# -- mutation -----------------------------------------------------------------------------------------------------
def _mutations(version: str, namespace: str) -> list[JSON]:
    filled_in: list[tuple[str, type[Resource], Sequence[Mutation]]] = [
        ("job", batch.Job, mutations.JOB_MUTATIONS),
        ("queue", scheduling.Queue, mutations.QUEUE_MUTATIONS),
        ("pod", core.Pod, mutations.POD_MUTATIONS),
        ("podgroup", scheduling.PodGroup, mutations.PODGROUP_MUTATIONS),
        ("cronjob", batch.CronJob, mutations.CRONJOB_MUTATIONS),
        ("jobflow", flow.JobFlow, ()),
        ("jobtemplate", flow.JobTemplate, mutations.JOBTEMPLATE_MUTATIONS),
    ]
    return [_mutation(name, reader, several, version, namespace) for name, reader, several in filled_in]


def _mutation(name: str, reader: type[Resource], several: Sequence[Mutation], version: str, namespace: str) -> JSON:
    spec: JSON = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": _constraints((reader,), ("CREATE",)),
    }
    if reader in SUBMITTED:
        several = (*several, *SUBMITTER_MUTATIONS)
        spec["variables"] = _variables({CONTROLLERS: listed(controller_users(namespace))})
    spec["mutations"] = [{"patchType": "JSONPatch", "jsonPatch": {"expression": each.expression}} for each in several]
    return _manifest(version, "MutatingAdmissionPolicy", f"volcano-{name}-mutation-policy", spec)


# -- what both have -----------------------------------------------------------------------------------------------
def _several(reader: type[Resource] | Sequence[type[Resource]]) -> Sequence[type[Resource]]:
    return (reader,) if isinstance(reader, type) else reader


def _constraints(readers: Sequence[type[Resource]], operations: Sequence[str]) -> JSON:
    rows = [resource_type(reader) for reader in readers]
    rules = [
        {
            "apiGroups": [row.group],
            "apiVersions": [row.version],
            "operations": list(operations),
            "resources": [row.plural],
        }
        for row in rows
    ]
    return {"resourceRules": rules}


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
