"""The rules for Jobs as CEL: what the webhook decides from the job alone, with the same messages.

Pod templates are validated by Kubernetes and checked here only for frequent mistakes; queues cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.admission.job_policies import CHOICES, USER_ACTIONS, USER_EVENTS
from volcano.admission.policy_rules import (
    DURATION,
    NOTHING,
    QUALIFIED,
    SUBDOMAIN,
    Rule,
    acceptable_estimate,
    amount,
    both_tiers,
    estimate_annotation,
    given,
    has_no_cycle,
    has_whole_amount,
    layers,
    listed,
    not_negative,
    one_tier,
)
from volcano.api.batch import MAX_PODS_PER_JOB
from volcano.api.jobs.estimates import ESTIMATE_RULE
from volcano.api.jobs.plugins import JOB_PLUGINS

KNOWN: Final = listed(tuple(USER_EVENTS))
ACTIONS: Final = listed(tuple(USER_ACTIONS))
DNS_LABEL: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
MAX_NAMED_TASKS: Final = 100
INDICES: Final = "[" + ", ".join(map(str, range(MAX_NAMED_TASKS))) + "]"
"""The language has no index of an element, so this is what tasks are counted by; those after the last are let pass."""
CREATED: Final = "request.operation == 'CREATE'"

_DEPENDENCIES: Final = "(has(n.dependsOn) && has(n.dependsOn.name) ? n.dependsOn.name : [])"
_MASTERS: Final = "object.spec.plugins.mpi.filter(a, a.matches('^--?master=')).map(a, a.split('=', 2)[1])"
JOB_VARIABLES: Final[Mapping[str, str]] = {
    "tasks": given("object.spec.tasks", "[]"),
    "taskNames": "variables.tasks.map(t, has(t.name) ? t.name : '')",
    "replicas": "variables.tasks.map(t, has(t.replicas) ? t.replicas : 0)",
    "plugins": given("object.spec.plugins", "{}"),
    "masters": f"'mpi' in variables.plugins ? {_MASTERS} : []",
    "policies": given("object.spec.policies", "[]"),
    "volumes": given("object.spec.volumes", "[]"),
    "mountPaths": "variables.volumes.map(v, has(v.mountPath) ? v.mountPath : '')",
    "indices": f"{INDICES}.filter(i, i < variables.tasks.size())",
    # Only where there is something to look at: most jobs have no dependencies
    "dependents": "variables.tasks.exists(t, has(t.dependsOn)) ? variables.tasks.filter(t, has(t.name)) : []",
    **layers("variables.dependents", _DEPENDENCIES),
}


def each_not_negative(field: str) -> Rule:
    return Rule(
        f"variables.tasks.all(t, !has(t.{field}) || t.{field} >= 0)",
        f"spec.tasks[*].{field} should be greater than or equal to 0",
    )


def on_creation(rule: Rule) -> Rule:
    """A rule for creation only: an update cannot change what it checks."""
    return Rule(f"!({CREATED}) || ({rule.expression})", rule.message)


# -- policies -----------------------------------------------------------------------------------------------------
_EVENTS: Final = "((has(p.event) && p.event != '' ? [p.event] : []) + (has(p.events) ? p.events : []))"
_SAME_CODE: Final = "LIST.filter(q, has(q.exitCode) && q.exitCode == p.exitCode)"
POLICY_RULES: Final = (
    Rule("LIST.all(p, !(EVENTS.size() > 0 && has(p.exitCode)))", "must not specify event and exitCode simultaneously"),
    Rule("LIST.all(p, EVENTS.size() > 0 || has(p.exitCode))", "either event and exitCode should be specified"),
    Rule(f"LIST.all(p, EVENTS.all(e, e in {KNOWN}))", "invalid policy event"),
    Rule(f"LIST.all(p, EVENTS.size() == 0 || (has(p.action) && p.action in {ACTIONS}))", "invalid policy action"),
    Rule("LIST.all(p, !has(p.exitCode) || p.exitCode != 0)", "0 is not a valid error code"),
    Rule(
        "LIST.map(p, EVENTS).all(es, es.all(e, LIST.filter(p, e in EVENTS).size() == 1))",
        "duplicate event across different policies",
    ),
    Rule(f"LIST.all(p, !has(p.exitCode) || {_SAME_CODE}.size() == 1)", "duplicate exitCode"),
    Rule(f"LIST.all(p, !has(p.timeout) || p.timeout.matches('^[+-]?(0|{DURATION})$'))", "invalid policy timeout"),
    Rule(
        "!LIST.exists(p, '*' in EVENTS) || LIST.all(p, EVENTS.all(e, e == '*'))",
        "if there's * here, no other policy should be here",
    ),
)
"""For LIST, a list of policies; EVENTS are those of one `p`."""


def _of_job(rule: Rule) -> Rule:
    expression = rule.expression.replace("LIST", "variables.policies").replace("EVENTS", _EVENTS)
    return on_creation(Rule(expression, f"{rule.message}; {CHOICES}"))


def _of_tasks(rule: Rule) -> Rule:
    expression = rule.expression.replace("LIST", "t.policies").replace("EVENTS", _EVENTS)
    of_all = f"variables.tasks.all(t, !has(t.policies) || ({expression}))"
    return on_creation(Rule(of_all, f"task: {rule.message}; {CHOICES}"))


# -- containers ---------------------------------------------------------------------------------------------------
def _containers(condition: str) -> str:
    """A condition on every container `c` of every task `t`."""
    pod = "t.template.spec"
    lists = (f"(!has({pod}.{name}) || {pod}.{name}.all(c, {condition}))" for name in ("containers", "initContainers"))
    return f"variables.tasks.all(t, !has(t.template) || !has({pod}) || ({' && '.join(lists)}))"


def _amounts(kind: str, condition: str) -> str:
    return f"(!has(c.resources) || !has(c.resources.{kind}) || c.resources.{kind}.all(r, {condition}))"


_REQUEST, _LIMIT = amount("c.resources.requests[r]"), amount("c.resources.limits[r]")
_WITHIN: Final = (
    f"!has(c.resources.limits) || !(r in c.resources.limits) || r.startsWith('hugepages-') "
    f"|| !{_REQUEST}.isGreaterThan({_LIMIT})"
)


def _whole_cpus(kind: str) -> str:
    cpu = f"c.resources.{kind}['cpu']"
    whole = f"{amount(cpu)}.isGreaterThan({NOTHING}) && {has_whole_amount(cpu)}"
    return f"'cpu' in c.resources.{kind} && {whole}"


_NUMA: Final = (
    "!has(t.topologyPolicy) || t.topologyPolicy in ['', 'none'] || (has(c.resources) && ("
    f"has(c.resources.requests) && c.resources.requests.size() > 0 ? {_whole_cpus('requests')} "
    f": has(c.resources.limits) && {_whole_cpus('limits')}))"
)
CONTAINER_RULES: Final = (
    Rule(
        "variables.tasks.all(t, has(t.template) && has(t.template.spec) && has(t.template.spec.containers) "
        "&& t.template.spec.containers.size() > 0)",
        "spec.tasks[*].template.spec.containers: Required value",
    ),
    Rule(
        _containers(
            f"{_amounts('requests', f'!{_REQUEST}.isLessThan({NOTHING})')} "
            f"&& {_amounts('limits', f'!{_LIMIT}.isLessThan({NOTHING})')}"
        ),
        "spec.tasks[*].template.spec.containers[*].resources: must be greater than or equal to 0",
    ),
    Rule(
        _containers(_amounts("requests", _WITHIN)),
        "spec.tasks[*].template.spec.containers[*].resources.requests: must be less than or equal to its limit",
    ),
    Rule(
        _containers(_NUMA),
        "the cpu request of every container must be a whole number above 0 with topologyPolicy",
    ),
)

# -- partitions ---------------------------------------------------------------------------------------------------
_PARTITIONED: Final = "variables.tasks.all(t, !has(t.partitionPolicy) || ({}))"
_SIZE: Final = "t.partitionPolicy.partitionSize"
_LEAST: Final = "t.partitionPolicy.minPartitions"
PARTITION_RULES: Final = (
    Rule(
        _PARTITIONED.format(f"{given('t.replicas', '0')} == t.partitionPolicy.totalPartitions * {_SIZE}"),
        "'replicas' is not equal to 'totalPartitions'*'partitionSize' in task",
    ),
    Rule(
        _PARTITIONED.format(
            f"!has(t.minAvailable) || !has({_LEAST}) || {_LEAST} == 0 || {_LEAST} * {_SIZE} == t.minAvailable"
        ),
        "'minAvailable' is not equal to 'minPartitions'*'partitionSize' in task",
    ),
    Rule(
        _PARTITIONED.format(
            f"!has(t.partitionPolicy.networkTopology) || {one_tier('t.partitionPolicy.networkTopology')}"
        ),
        both_tiers("the partitionPolicy of task"),
    ),
)

# -- volumes ------------------------------------------------------------------------------------------------------
_CLAIM_NAME: Final = "has(v.volumeClaimName) && v.volumeClaimName != ''"
VOLUME_RULES: Final = (
    Rule("variables.mountPaths.all(m, m != '')", "mountPath is required"),
    Rule("variables.mountPaths.all(m, variables.mountPaths.exists_one(n, n == m))", "duplicated mountPath"),
    Rule(
        f"variables.volumes.all(v, has(v.volumeClaim) || ({_CLAIM_NAME}))",
        "either VolumeClaim or VolumeClaimName must be specified",
    ),
    Rule(
        f"variables.volumes.all(v, !(has(v.volumeClaim) && {_CLAIM_NAME}))",
        "conflict: volumeClaimName names an existing claim, volumeClaim asks for a claim to be created; give only one",
    ),
    Rule(
        f"variables.volumes.all(v, !({_CLAIM_NAME}) || v.volumeClaimName.matches('{SUBDOMAIN}'))",
        "invalid volumeClaimName",
    ),
)

# -- plugins and dependencies -------------------------------------------------------------------------------------
_MASTER: Final = "(variables.masters.size() > 0 ? variables.masters[variables.masters.size() - 1] : 'master')"
PLUGIN_RULES: Final = (
    Rule(
        f"!('mpi' in variables.plugins) || {_MASTER} in variables.taskNames",
        "the master task of job plugin mpi was not found in the job",
    ),
    Rule(f"variables.plugins.all(p, p in {listed(tuple(JOB_PLUGINS))})", "unable to find job plugin"),
)
_NOT_DAG: Final = "job has dependencies between tasks that are not a DAG"
DEPENDENCY_RULES: Final = (
    Rule(
        f"variables.dependents.all(n, {_DEPENDENCIES}.all(t, {_DEPENDENCIES}.exists_one(u, u == t)))",
        f"{_NOT_DAG}: a task names another twice",
    ),
    Rule(
        f"variables.dependents.all(n, {_DEPENDENCIES}.all(t, t in variables.taskNames))",
        f"{_NOT_DAG}: a task depends on one which does not exist",
    ),
    Rule(has_no_cycle("variables.dependents"), f"{_NOT_DAG}: there is a cycle"),
)


# -- updates ------------------------------------------------------------------------------------------------------
def _text(*paths: str) -> str:
    """Fields as texts, in a list: CEL requires one type for all elements of a list."""
    return "[" + ", ".join(f"has({path}) ? string({path}) : ''" for path in paths) + "]"


_POD: Final = "t.template.spec"
_POLICY: Final = f"{_text('p.action', 'p.event', 'p.exitCode')} + (has(p.events) ? p.events : [])"
_CONTAINER: Final = f"{_text('c.name', 'c.image')} + (has(c.command) ? c.command : []) + (has(c.args) ? c.args : [])"
_TASK: Final = (
    f"[{_text('t.name', 't.topologyPolicy', 't.maxRetry')}]"
    f" + (has(t.policies) ? t.policies.map(p, {_POLICY}) : [])"
    f" + (has(t.template) && has({_POD}) ? [[string(has({_POD}.hostNetwork) && {_POD}.hostNetwork)]]"
    f" + {_POD}.containers.map(c, {_CONTAINER})"
    f" + (has({_POD}.initContainers) ? {_POD}.initContainers.map(c, {_CONTAINER}) : []) : [])"
)
_VOLUME: Final = (
    "[string(v.mountPath), has(v.volumeClaim) ? 'new' : has(v.volumeClaimName) ? 'existing ' + v.volumeClaimName : '']"
)


def _fixed(side: str) -> list[str]:
    """What no update may change: texts and numbers by what they mean, lists and maps alike when absent and empty."""
    spec = f"{side}.spec"
    return [
        *(given(f"{spec}.{name}", "''") for name in ("queue", "schedulerName")),
        given(f"{spec}.maxRetry", "0"),
        *(f"(has({spec}.{name}) ? string({spec}.{name}) : '')" for name in ("ttlSecondsAfterFinished", "minSuccess")),
        given(f"{spec}.plugins", "{}"),
        f"(has({spec}.policies) ? {spec}.policies.map(p, {_POLICY}) : [])",
        f"(has({spec}.tasks) ? {spec}.tasks.map(t, {_TASK}) : [])",
        f"(has({spec}.volumes) ? {spec}.volumes.map(v, {_VOLUME}) : [])",
    ]


_UNCHANGED: Final = " && ".join(
    f"{new} == {old}" for new, old in zip(_fixed("object"), _fixed("oldObject"), strict=True)
)
UPDATE_RULES: Final = (
    Rule(
        f"request.operation != 'UPDATE' || variables.tasks.size() == {given('oldObject.spec.tasks', '[]')}.size()",
        "job updates may not add or remove tasks",
    ),
    Rule(
        f"request.operation != 'UPDATE' || ({_UNCHANGED})",
        "job updates may not change fields other than `minAvailable`, `priorityClassName`, `tasks[*].replicas` and "
        "`tasks[*].minAvailable`",
    ),
)

JOB_RULES: Final = (
    not_negative("object.spec", "minAvailable", "spec.minAvailable"),
    not_negative("object.spec", "maxRetry", "spec.maxRetry"),
    not_negative("object.spec", "ttlSecondsAfterFinished", "spec.ttlSecondsAfterFinished"),
    each_not_negative("replicas"),
    each_not_negative("minAvailable"),
    Rule("variables.tasks.size() > 0", "No task specified in job spec"),
    Rule(
        "!has(object.spec.networkTopology) || " + one_tier("object.spec.networkTopology"), both_tiers("networkTopology")
    ),
    Rule(
        "variables.tasks.all(t, !has(t.minAvailable) || t.minAvailable <= (has(t.replicas) ? t.replicas : 0))",
        "'minAvailable' is greater than 'replicas' in task",
    ),
    on_creation(Rule("variables.taskNames.all(n, variables.taskNames.exists_one(m, m == n))", "duplicated task name")),
    on_creation(
        Rule(
            f"variables.taskNames.all(n, n.size() <= 63 && n.matches('{DNS_LABEL}'))",
            "spec.tasks[*].name must be a lowercase DNS label of at most 63 characters",
        )
    ),
    Rule(
        f"variables.replicas.sum() <= {MAX_PODS_PER_JOB} || (request.operation == 'UPDATE' && "
        f"variables.replicas.sum() <= {given('oldObject.spec.tasks', '[]')}"
        ".map(t, has(t.replicas) ? t.replicas : 0).sum())",
        f"job has too many replicas in all tasks: must be less than or equal to {MAX_PODS_PER_JOB}",
    ),
    Rule(
        "!has(object.spec.minAvailable) || object.spec.minAvailable <= variables.replicas.sum()",
        "job 'minAvailable' should not be greater than total replicas in tasks",
    ),
    on_creation(
        Rule(
            "!has(object.metadata.name) || "
            f"(object.metadata.name.size() <= 63 && object.metadata.name.matches('{QUALIFIED}'))",
            "job name must consist of alphanumeric characters, '-', '_' or '.', and be no more than 63 characters",
        )
    ),
    on_creation(
        Rule(
            "!has(object.metadata.name) || variables.indices.all(i, "
            "(object.metadata.name + '-' + variables.taskNames[i] + '-' + string(i)).size() <= 63)",
            "the name of a pod, made of those of the job and of its task, must be no more than 63 bytes",
        )
    ),
    on_creation(
        Rule("!has(object.spec.queue) || object.spec.queue != 'root'", "can not submit job to root queue"),
    ),
    on_creation(
        Rule(
            f"!has(object.spec.runningEstimate) || {acceptable_estimate('object.spec.runningEstimate')}",
            f"spec.runningEstimate: Invalid value: {ESTIMATE_RULE}",
        )
    ),
    on_creation(estimate_annotation()),
    *map(_of_job, POLICY_RULES),
    *map(_of_tasks, POLICY_RULES),
    *PARTITION_RULES,
    *map(on_creation, (*PLUGIN_RULES, *VOLUME_RULES, *CONTAINER_RULES, *DEPENDENCY_RULES)),
    *UPDATE_RULES,
)
