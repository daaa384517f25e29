"""What admission fills in, as CEL: where, what, and on which condition. policies.py makes manifests of it."""

from __future__ import annotations

from typing import Final, NamedTuple

from volcano.admission.policy_job_rules import INDICES
from volcano.admission.policy_rules import EXTENDED, listed
from volcano.api.jobs.plugins import JOB_PLUGINS


class Mutation(NamedTuple):
    """An expression whose result is a list of patches; each mutation sees the result of those before it."""

    expression: str


def put(condition: str, path: str, value: str) -> Mutation:
    return Mutation(f"{condition} ? [JSONPatch{{op: 'add', path: '{path}', value: {value}}}] : []")


def put_in_tasks(condition: str, path: str, value: str) -> Mutation:
    """For each task `object.spec.tasks[i]` of which the condition holds."""
    return put_in_each_task("object.spec", condition, f"'/{path}'", value)


def put_in_each_task(holder: str, condition: str, path: str, value: str) -> Mutation:
    """For each task `i` of a job's spec at `holder`; the path is an expression."""
    chosen = f"{INDICES}.filter(i, i < {holder}.tasks.size() && ({condition}))"
    place = f"'{holder.removeprefix('object').replace('.', '/')}/tasks/' + string(i) + {path}"
    patches = f"{chosen}.map(i, JSONPatch{{op: 'add', path: {place}, value: {value}}})"
    return Mutation(f"{_is_there(holder)}has({holder}.tasks) ? {patches} : []")


def _is_there(holder: str) -> str:
    """The conditions that the parts of a path below the object exist; none for its spec, which is required."""
    parts = holder.split(".")
    return "".join(f"has({'.'.join(parts[:end])}) && " for end in range(3, len(parts) + 1))


# -- limits of extended resources ---------------------------------------------------------------------------------
MAX_LIMITED: Final = {"containers": 4, "initContainers": 1}
"""How many containers of a task are looked at: a patch of a list within a list needs a mutation for each place."""
MAX_LIMITED_RESOURCES: Final = 2
"""How many resources of a container get a limit."""


def limits_of_extended_resources(holder: str) -> tuple[Mutation, ...]:
    """The request becomes the limit where a container of a task requests an extended resource without one."""
    places = [(kind, number) for kind, count in MAX_LIMITED.items() for number in range(count)]
    return tuple(
        _limit(f"{holder}.tasks[i]", holder, kind, number)
        for kind, number in places
        for _ in range(MAX_LIMITED_RESOURCES)
    )


def _limit(task: str, holder: str, kind: str, number: int) -> Mutation:
    """One limit, of the first resource that lacks it; the next mutation finds the next one."""
    pod, resources = f"{task}.template.spec", f"{task}.template.spec.{kind}[{number}].resources"
    exists = (
        f"has({task}.template) && has({pod}) && has({pod}.{kind}) && {pod}.{kind}.size() > {number} "
        f"&& has({resources}) && has({resources}.requests)"
    )
    lacking = f"{resources}.requests.filter(r, {EXTENDED} && (!has({resources}.limits) || !(r in {resources}.limits)))"
    path = (
        f"'/template/spec/{kind}/{number}/resources/limits' "
        f"+ (has({resources}.limits) ? '/' + {lacking}[0].replace('~', '~0').replace('/', '~1') : '')"
    )
    request = f"{resources}.requests[{lacking}[0]]"
    value = f"has({resources}.limits) ? dyn({request}) : dyn({{{lacking}[0]: {request}}})"
    return put_in_each_task(holder, f"{exists} && {lacking}.size() > 0", path, value)


# -- Job ----------------------------------------------------------------------------------------------------------
_TASK: Final = "object.spec.tasks[i]"
_POD: Final = f"{_TASK}.template.spec"
_PARTITIONS: Final = f"{_TASK}.partitionPolicy"
_LEAST: Final = (
    f"has({_PARTITIONS}) && has({_PARTITIONS}.minPartitions) && {_PARTITIONS}.minPartitions > 0 "
    f"? {_PARTITIONS}.minPartitions * {_PARTITIONS}.partitionSize : (has({_TASK}.replicas) ? {_TASK}.replicas : 0)"
)


def _pulling_in(plugin: str) -> str:
    """Whether something in the job needs a plugin that is not listed."""
    needing = listed(tuple(name for name, row in JOB_PLUGINS.items() if plugin in row.pulls_in))
    return (
        f"has(object.spec.plugins) && {needing}.exists(p, p in object.spec.plugins) "
        f"&& !('{plugin}' in object.spec.plugins)"
    )


JOB_MUTATIONS: Final = (
    put("!has(object.spec.queue) || object.spec.queue == ''", "/spec/queue", "'default'"),
    put("!has(object.spec.schedulerName) || object.spec.schedulerName == ''", "/spec/schedulerName", "'volcano'"),
    put("!has(object.spec.maxRetry) || object.spec.maxRetry == 0", "/spec/maxRetry", "3"),
    put_in_tasks(f"!has({_TASK}.name) || {_TASK}.name == ''", "name", "'default' + string(i)"),
    put_in_tasks(
        f"has({_TASK}.template) && has({_POD}) && has({_POD}.hostNetwork) && {_POD}.hostNetwork "
        f"&& (!has({_POD}.dnsPolicy) || {_POD}.dnsPolicy == '')",
        "template/spec/dnsPolicy",
        "'ClusterFirstWithHostNet'",
    ),
    put_in_tasks(f"!has({_TASK}.minAvailable)", "minAvailable", _LEAST),
    put_in_tasks(f"!has({_TASK}.maxRetry) || {_TASK}.maxRetry == 0", "maxRetry", "3"),
    put(
        "has(object.spec.tasks) && (!has(object.spec.minAvailable) || object.spec.minAvailable == 0)",
        "/spec/minAvailable",
        "object.spec.tasks.map(t, has(t.minAvailable) ? t.minAvailable : (has(t.replicas) ? t.replicas : 0)).sum()",
    ),
    put(_pulling_in("svc"), "/spec/plugins/svc", "[]"),
    put(_pulling_in("ssh"), "/spec/plugins/ssh", "[]"),
    *limits_of_extended_resources("object.spec"),
)
CRONJOB_MUTATIONS: Final = limits_of_extended_resources("object.spec.jobTemplate.spec")
JOBTEMPLATE_MUTATIONS: Final = limits_of_extended_resources("object.spec")

# -- Queue --------------------------------------------------------------------------------------------------------
_HIERARCHY: Final = "volcano.sh/hierarchy"
_WEIGHTS: Final = "volcano.sh/hierarchy-weights"
_HAS_HIERARCHY: Final = (
    f"has(object.metadata.annotations) && '{_HIERARCHY}' in object.metadata.annotations "
    f"&& '{_WEIGHTS}' in object.metadata.annotations && object.metadata.annotations['{_HIERARCHY}'] != '' "
    f"&& object.metadata.annotations['{_WEIGHTS}'] != ''"
)
_LACKS_ROOT: Final = f"{_HAS_HIERARCHY} && !object.metadata.annotations['{_HIERARCHY}'].startsWith('root')"
QUEUE_MUTATIONS: Final = (
    # The weights first: they are only touched while the path still lacks its root
    put(
        _LACKS_ROOT,
        f"/metadata/annotations/{_WEIGHTS.replace('/', '~1')}",
        f"'1/' + object.metadata.annotations['{_WEIGHTS}']",
    ),
    put(
        _LACKS_ROOT,
        f"/metadata/annotations/{_HIERARCHY.replace('/', '~1')}",
        f"'root/' + object.metadata.annotations['{_HIERARCHY}']",
    ),
    put("!has(object.spec)", "/spec", "{}"),
    put("!has(object.spec.reclaimable)", "/spec/reclaimable", "true"),
    put("!has(object.spec.weight) || object.spec.weight == 0", "/spec/weight", "1"),
)

# -- Pod and PodGroup ---------------------------------------------------------------------------------------------
_GROUP: Final = "volcano.sh/resource-group"
_IN_GROUP: Final = (
    f"has(object.metadata.annotations) && '{_GROUP}' in object.metadata.annotations "
    f"&& object.metadata.annotations['{_GROUP}'] == 'default'"
)
_TOLERATION: Final = "{'key': 'volcano.sh/node-group', 'operator': 'Equal', 'value': 'compute', 'effect': 'NoSchedule'}"
POD_MUTATIONS: Final = (
    put(_IN_GROUP, "/spec/schedulerName", "'volcano'"),
    put(f"{_IN_GROUP} && !has(object.spec.nodeSelector)", "/spec/nodeSelector", "{'volcano.sh/node-group': 'compute'}"),
    put(f"{_IN_GROUP} && has(object.spec.nodeSelector)", "/spec/nodeSelector/volcano.sh~1node-group", "'compute'"),
    put(f"{_IN_GROUP} && !has(object.spec.tolerations)", "/spec/tolerations", f"[{_TOLERATION}]"),
    put(
        f"{_IN_GROUP} && has(object.spec.tolerations) && "
        "!object.spec.tolerations.exists(t, has(t.key) && t.key == 'volcano.sh/node-group')",
        "/spec/tolerations/-",
        _TOLERATION,
    ),
)
_NAMESPACE_QUEUE: Final = "scheduling.volcano.sh/queue-name"
PODGROUP_MUTATIONS: Final = (
    put(
        "(!has(object.spec.queue) || object.spec.queue == 'default') && has(namespaceObject.metadata.annotations) "
        f"&& '{_NAMESPACE_QUEUE}' in namespaceObject.metadata.annotations "
        f"&& namespaceObject.metadata.annotations['{_NAMESPACE_QUEUE}'] != ''",
        "/spec/queue",
        f"namespaceObject.metadata.annotations['{_NAMESPACE_QUEUE}']",
    ),
)
