"""Volcano's admission rules as CEL, as far as a policy can see: one object, no others.

Only texts: policies.py makes manifests of them. A rule is a condition that must hold and what is said when it does not;
names after `variables.` are defined beside the rules, once per policy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from volcano.admission.job_policies import USER_ACTIONS, USER_EVENTS
from volcano.api.batch import Action


class Rule(NamedTuple):
    """What must hold, and the message when it does not."""

    expression: str
    message: str


def _listed(words: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


EVENTS: Final = _listed(tuple(USER_EVENTS))
ACTIONS: Final = _listed(tuple(action for action in USER_ACTIONS if action != Action.RESTART_PARTITION))
DNS_LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
QUALIFIED: Final = "^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"


def not_negative(holder: str, field: str, path: str) -> Rule:
    return Rule(f"!has({holder}.{field}) || {holder}.{field} >= 0", f"{path} should be greater than or equal to 0")


def each_not_negative(field: str) -> Rule:
    return Rule(
        f"variables.tasks.all(t, !has(t.{field}) || t.{field} >= 0)",
        f"spec.tasks[*].{field} should be greater than or equal to 0",
    )


# -- Job ----------------------------------------------------------------------------------------------------------
JOB_VARIABLES: Final[Mapping[str, str]] = {
    "tasks": "has(object.spec.tasks) ? object.spec.tasks : []",
    "taskNames": "variables.tasks.map(t, has(t.name) ? t.name : '')",
    "replicas": "variables.tasks.map(t, has(t.replicas) ? t.replicas : 0)",
    "policies": "has(object.spec.policies) ? object.spec.policies : []",
    "policyEvents": (
        "variables.policies.map(p, (has(p.event) && p.event != '' ? [p.event] : []) + (has(p.events) ? p.events : []))"
    ),
    "exitCodes": "variables.policies.filter(p, has(p.exitCode)).map(p, p.exitCode)",
    "volumes": "has(object.spec.volumes) ? object.spec.volumes : []",
    "mountPaths": "variables.volumes.map(v, has(v.mountPath) ? v.mountPath : '')",
}
_HAS_EVENT: Final = "((has(p.event) && p.event != '') || (has(p.events) && p.events.size() > 0))"
JOB_RULES: Final = (
    not_negative("object.spec", "minAvailable", "spec.minAvailable"),
    not_negative("object.spec", "maxRetry", "spec.maxRetry"),
    not_negative("object.spec", "ttlSecondsAfterFinished", "spec.ttlSecondsAfterFinished"),
    each_not_negative("replicas"),
    each_not_negative("minAvailable"),
    Rule("variables.tasks.size() > 0", "No task specified in job spec"),
    Rule("variables.taskNames.all(n, variables.taskNames.exists_one(m, m == n))", "duplicated task name"),
    Rule(
        f"variables.taskNames.all(n, n.size() <= 63 && n.matches('{DNS_LABEL}'))",
        "spec.tasks[*].name must be a lowercase DNS label of at most 63 characters",
    ),
    Rule(
        "variables.tasks.all(t, !has(t.minAvailable) || t.minAvailable <= (has(t.replicas) ? t.replicas : 0))",
        "'minAvailable' is greater than 'replicas' in task",
    ),
    Rule(
        "!has(object.spec.minAvailable) || object.spec.minAvailable <= variables.replicas.sum()",
        "job 'minAvailable' should not be greater than total replicas in tasks",
    ),
    Rule(
        f"variables.policies.all(p, !({_HAS_EVENT} && has(p.exitCode)))",
        "must not specify event and exitCode simultaneously",
    ),
    Rule(
        f"variables.policies.all(p, {_HAS_EVENT} || has(p.exitCode))",
        "either event and exitCode should be specified",
    ),
    Rule(
        f"variables.policyEvents.all(es, es.all(e, e in {EVENTS}))",
        f"invalid policy event, valid events are {', '.join(USER_EVENTS)}",
    ),
    Rule(
        f"variables.policies.all(p, !{_HAS_EVENT} || (has(p.action) && p.action in {ACTIONS}))",
        "invalid policy action",
    ),
    Rule("variables.exitCodes.all(c, c != 0)", "0 is not a valid error code"),
    Rule(
        "variables.policyEvents.all(es, es.all(e, variables.policyEvents.filter(fs, e in fs).size() <= 1))",
        "duplicate event across different policies",
    ),
    Rule("variables.exitCodes.all(c, variables.exitCodes.exists_one(d, d == c))", "duplicate exitCode"),
    Rule(
        "!variables.policyEvents.exists(es, '*' in es) || variables.policyEvents.all(es, es.all(e, e == '*'))",
        "if there's * here, no other policy should be here",
    ),
    Rule("variables.mountPaths.all(m, m != '')", "mountPath is required"),
    Rule("variables.mountPaths.all(m, variables.mountPaths.exists_one(n, n == m))", "duplicated mountPath"),
    Rule(
        "variables.volumes.all(v, has(v.volumeClaim) || (has(v.volumeClaimName) && v.volumeClaimName != ''))",
        "either VolumeClaim or VolumeClaimName must be specified",
    ),
    Rule(
        "request.operation != 'UPDATE' || "
        "variables.tasks.size() == (has(oldObject.spec.tasks) ? oldObject.spec.tasks.size() : 0)",
        "job updates may not add or remove tasks",
    ),
    Rule(
        "request.operation != 'UPDATE' || "
        "(has(object.spec.queue) ? object.spec.queue : '') == (has(oldObject.spec.queue) ? oldObject.spec.queue : '')",
        "job updates may not change fields other than `minAvailable`, `priorityClassName`, `tasks[*].replicas` and "
        "`tasks[*].minAvailable`",
    ),
    Rule(
        "!has(object.metadata.name) || "
        f"(object.metadata.name.size() <= 63 && object.metadata.name.matches('{QUALIFIED}'))",
        "job name must consist of alphanumeric characters, '-', '_' or '.', and be no more than 63 characters",
    ),
)

# -- Queue --------------------------------------------------------------------------------------------------------
_DELETED: Final = "request.operation == 'DELETE'"
QUEUE_VARIABLES: Final[Mapping[str, str]] = {
    "capability": f"{_DELETED} || !has(object.spec.capability) ? {{}} : object.spec.capability",
    "deserved": f"{_DELETED} || !has(object.spec.deserved) ? {{}} : object.spec.deserved",
    "guarantee": (
        f"{_DELETED} || !has(object.spec.guarantee) || !has(object.spec.guarantee.resource) ? {{}} "
        ": object.spec.guarantee.resource"
    ),
    "annotations": f"{_DELETED} || !has(object.metadata.annotations) ? {{}} : object.metadata.annotations",
    "hierarchy": "'volcano.sh/hierarchy' in variables.annotations ? variables.annotations['volcano.sh/hierarchy'] : ''",
    "weights": (
        "'volcano.sh/hierarchy-weights' in variables.annotations ? "
        "variables.annotations['volcano.sh/hierarchy-weights'] : ''"
    ),
}
QUEUE_RULES: Final = (
    Rule(
        f"{_DELETED} || !has(object.status) || !has(object.status.state) "
        "|| object.status.state in ['', 'Open', 'Closed']",
        "queue state must be Open or Closed",
    ),
    Rule(
        "variables.deserved.all(r, !(r in variables.capability) || "
        "!quantity(string(variables.deserved[r])).isGreaterThan(quantity(string(variables.capability[r]))))",
        "deserved must be <= capability",
    ),
    Rule(
        "variables.guarantee.all(r, r in variables.deserved && "
        "!quantity(string(variables.guarantee[r])).isGreaterThan(quantity(string(variables.deserved[r]))))",
        "deserved must be >= guarantee",
    ),
    Rule(
        "(variables.hierarchy == '') == (variables.weights == '') && "
        "variables.hierarchy.split('/').size() == variables.weights.split('/').size()",
        "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights",
    ),
    Rule(
        r"variables.weights == '' || variables.weights.split('/').all(w, w.matches('^[0-9]+(\\.[0-9]+)?$') && "
        "double(w) > 0.0)",
        "every weight in volcano.sh/hierarchy-weights must be a number larger than 0",
    ),
    Rule(
        f"!({_DELETED}) || !(oldObject.metadata.name in ['default', 'root'])",
        "`default` and `root` queue can not be deleted",
    ),
)

# -- Pod ----------------------------------------------------------------------------------------------------------
BUDGETS: Final = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
POD_CONDITION: Final = "has(object.spec.schedulerName) && object.spec.schedulerName == 'volcano'"
POD_VARIABLES: Final[Mapping[str, str]] = {
    "annotations": "has(object.metadata.annotations) ? object.metadata.annotations : {}",
    "budgets": f"{_listed(BUDGETS)}.filter(k, k in variables.annotations)",
}
POD_RULES: Final = (
    Rule(
        "variables.budgets.all(k, variables.annotations[k].matches('^[+]?0*[1-9][0-9]*$') || "
        "variables.annotations[k].matches('^0*[1-9][0-9]?%$'))",
        "the value of a disruption budget must be a positive integer, or a valid percentage which between 1% ~ 99%",
    ),
    Rule("variables.budgets.size() <= 1", "not allow configure multiple annotations at same time"),
)

# -- HyperNode ----------------------------------------------------------------------------------------------------
HYPERNODE_VARIABLES: Final[Mapping[str, str]] = {
    "members": "has(object.spec.members) ? object.spec.members : []",
    "names": (
        "variables.members.filter(m, has(m.selector) && has(m.selector.exactMatch))"
        ".map(m, has(m.selector.exactMatch.name) ? m.selector.exactMatch.name : '')"
    ),
    "patterns": (
        "variables.members.filter(m, has(m.selector) && has(m.selector.regexMatch))"
        ".map(m, has(m.selector.regexMatch.pattern) ? m.selector.regexMatch.pattern : '')"
    ),
}
_BALANCED: Final = " && ".join(
    f"p.split('{opening}').size() == p.split('{closing}').size()" for opening, closing in ("()", "[]", "{}")
)
HYPERNODE_RULES: Final = (
    Rule("variables.members.size() > 0", "spec.members: member must have at least one member"),
    Rule(
        "variables.members.all(m, has(m.selector) && [has(m.selector.exactMatch), has(m.selector.regexMatch), "
        "has(m.selector.labelMatch)].filter(given, given).size() == 1)",
        "spec.members[*].selector: exactly one of exactMatch, regexMatch and labelMatch must be specified",
    ),
    Rule(
        f"variables.names.all(n, n != '' && n.size() <= 253 && n.matches('{SUBDOMAIN}'))",
        "spec.members[*].selector.exactMatch.name must be a non-empty qualified name",
    ),
    Rule(
        f"variables.patterns.all(p, p != '' && {_BALANCED})",
        "spec.members[*].selector.regexMatch.pattern: member regexMatch pattern is invalid",
    ),
)

# -- JobFlow ------------------------------------------------------------------------------------------------------
JOBFLOW_VARIABLES: Final[Mapping[str, str]] = {
    "flows": "has(object.spec.flows) ? object.spec.flows : []",
    "names": "variables.flows.map(f, f.name)",
}
_TARGETS: Final = "(has(f.dependsOn) && has(f.dependsOn.targets) ? f.dependsOn.targets : [])"
JOBFLOW_RULES: Final = (
    Rule(
        f"variables.flows.all(f, {_TARGETS}.all(t, t in variables.names))",
        "jobflow Flow is not DAG: vertex is not defined",
    ),
    Rule(f"variables.flows.all(f, !(f.name in {_TARGETS}))", "jobflow Flow is not DAG: a flow depends on itself"),
)
