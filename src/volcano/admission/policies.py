"""Admission without a webhook: ValidatingAdmissionPolicies and MutatingAdmissionPolicies with their bindings.

They cover what a policy can decide from one object alone, with the same words. Rules are in policy_rules.py and
policy_job_rules.py, what is filled in in policy_mutations.py; `volcano manifests policies` prints all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from volcano.admission import policy_job_rules as job_rules
from volcano.admission import policy_mutations as mutations
from volcano.admission import policy_rules as rules
from volcano.admission.policy_mutations import Mutation
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
def _mutations(version: str) -> list[JSON]:
    return [
        _mutation("job", batch.Job, mutations.JOB_MUTATIONS, version),
        _mutation("queue", scheduling.Queue, mutations.QUEUE_MUTATIONS, version),
        _mutation("pod", core.Pod, mutations.POD_MUTATIONS, version),
        _mutation("podgroup", scheduling.PodGroup, mutations.PODGROUP_MUTATIONS, version),
        _mutation("cronjob", batch.CronJob, mutations.CRONJOB_MUTATIONS, version),
        _mutation("jobflow", flow.JobFlow, mutations.JOBFLOW_MUTATIONS, version),
        _mutation("jobtemplate", flow.JobTemplate, mutations.JOBTEMPLATE_MUTATIONS, version),
    ]


def _mutation(name: str, reader: type[Resource], several: Sequence[Mutation], version: str) -> JSON:
    spec: JSON = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": _constraints(reader, ("CREATE",)),
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": each.expression}} for each in several],
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
