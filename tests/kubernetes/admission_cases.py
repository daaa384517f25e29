"""What admission must say of which object: one table for the webhook and for the policies.

A case is an object, and words that a refusal must contain; no words mean that it is admitted. `by` is "webhook" where
other objects, or Kubernetes' whole validation of pods, have to be known: policies let those pass.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

JSONObject = dict[str, Any]
HIERARCHY, WEIGHTS = "volcano.sh/hierarchy", "volcano.sh/hierarchy-weights"
MIN, MAX = "volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable"
BOTH_TIERS = {"highestTierAllowed": 1, "highestTierName": "rack"}
TIERS = "must not specify 'highestTierAllowed' and 'highestTierName'"


class Case(NamedTuple):
    title: str
    body: JSONObject
    words: tuple[str, ...] = ()
    by: str = ""
    old: JSONObject | None = None
    """What is there already, under the same name; then this is an update."""


def a_template(**container: Any) -> JSONObject:
    return {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox", **container}]}}


def a_task(name: str = "work", replicas: int = 1, **fields: Any) -> JSONObject:
    return {"name": name, "replicas": replicas, "template": a_template(), **fields}


def a_job(*tasks: JSONObject, name: str = "subject", **spec: Any) -> JSONObject:
    full = {"tasks": list(tasks) or [a_task()], **spec}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}, "spec": full}


def policies(*given: JSONObject) -> JSONObject:
    return a_job(policies=list(given))


def asking(**resources: Any) -> JSONObject:
    return a_template(resources=resources)


def volumes(*given: JSONObject) -> JSONObject:
    return a_job(volumes=list(given))


def after(name: str, *names: str) -> JSONObject:
    return a_task(name, dependsOn={"name": list(names)})


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
JOBS = [
    Case("a plain job", a_job()),
    Case("a gpu that is only requested", a_job(a_task(template=asking(requests={"cpu": "1", "nvidia.com/gpu": 1})))),
    Case("two tasks", a_job(a_task("a", 2), a_task("b", 3), minAvailable=5)),
    Case("no tasks", a_job() | {"spec": {"minAvailable": 0}}, ("No task specified in job spec",)),
    Case("a task larger than itself", a_job(a_task(minAvailable=2)), ("'minAvailable' is greater than 'replicas' in task",)),
    Case("two tasks of a name", a_job(a_task("a"), a_task("a")), ("duplicated task name",)),
    Case("a gang larger than all tasks", a_job(a_task("a", 2), minAvailable=3), ("job 'minAvailable' should not be greater than total replicas",)),
    Case("a job name that is no name", a_job(name="Job_"), ("metadata.name",)),
    Case("a pod name that gets too long", a_job(name="j" * 60), ("must be no more than 63 bytes",)),
    Case("a pod name that just fits", a_job(name="j" * 56)),
    Case("an unknown plugin", a_job(plugins={"big": []}), ("unable to find job plugin",)),
    Case("mpi without its master", a_job(plugins={"mpi": []}), ("the master task", "of job plugin mpi was not found")),
    Case("mpi without its renamed master", a_job(a_task("master"), plugins={"mpi": ["--master=boss"]}), ("the master task", "of job plugin mpi was not found")),
    Case("mpi with its master", a_job(a_task("master"), a_task("worker"), plugins={"mpi": []})),
    Case("mpi with its renamed master", a_job(a_task("boss"), plugins={"mpi": ["--port=22", "-master=boss"]})),
    Case("every known plugin", a_job(a_task("master"), plugins={name: [] for name in ("ssh", "env", "svc", "tensorflow", "mpi", "pytorch", "hcclrank", "ray")})),
    Case("both tiers", a_job(networkTopology=BOTH_TIERS), (TIERS,)),
    Case("one tier", a_job(networkTopology={"highestTierName": "rack"})),
    # policies
    Case("event and exit code", policies({"event": "PodFailed", "action": "AbortJob", "exitCode": -1}), ("must not specify event and exitCode simultaneously",)),
    Case("events and exit code", policies({"events": ["PodFailed"], "action": "AbortJob", "exitCode": 3}), ("must not specify event and exitCode simultaneously",)),
    Case("neither event nor exit code", policies({"action": "AbortJob"}), ("either event and exitCode should be specified",)),
    Case("an internal event", policies({"event": "OutOfSync", "action": "AbortJob"}), ("invalid policy event", "valid events are *, PodFailed")),
    Case("an event nobody knows", policies({"event": "FullMoon", "action": "AbortJob"}), ("spec.policies[0].event", "Unsupported value")),
    Case("an unknown action", policies({"event": "PodFailed", "action": "Dance"}), ("invalid policy action", "valid actions are AbortJob, RestartJob")),
    Case("an internal action", policies({"event": "PodFailed", "action": "SyncJob"}), ("invalid policy action",)),
    Case("no action", policies({"event": "PodFailed"}), ("invalid policy action",)),
    Case("an event twice", policies({"event": "PodFailed", "action": "AbortJob"}, {"events": ["PodFailed"], "action": "RestartJob"}), ("duplicate",)),
    Case("exit code zero", policies({"exitCode": 0, "action": "AbortJob"}), ("0 is not a valid error code",)),
    Case("an exit code twice", policies({"exitCode": 1, "action": "AbortJob"}, {"exitCode": 1, "action": "RestartJob"}), ("duplicate exitCode",)),
    Case("a timeout that is no duration", policies({"event": "PodPending", "action": "AbortJob", "timeout": "soon"}), ("invalid policy timeout",)),
    Case("a timeout", policies({"event": "PodPending", "action": "AbortJob", "timeout": "1h2m.5s"})),
    Case("a task's timeout that is no duration", a_job(a_task(policies=[{"event": "PodPending", "action": "AbortJob", "timeout": "5 min"}])), ("task", "invalid policy timeout")),
    Case("star with company", policies({"event": "*", "action": "AbortJob"}, {"event": "PodFailed", "action": "RestartJob"}), ("if there's * here, no other policy should be here",)),
    Case("star alone", policies({"event": "*", "action": "RestartJob"})),
    Case("one event twice in one policy", policies({"event": "PodFailed", "events": ["PodFailed"], "action": "AbortJob"})),
    Case("any action with an exit code", policies({"exitCode": 7, "action": "Whatever"})),
    Case("restart of a partition", policies({"event": "PodFailed", "action": "RestartPartition"})),
    Case("a task's bad action", a_job(a_task(policies=[{"event": "PodFailed", "action": "Dance"}])), ("task", "invalid policy action")),
    Case("a task's event twice", a_job(a_task(policies=[{"event": "PodFailed", "action": "AbortJob"}] * 2)), ("task", "duplicate")),
    Case("a task's star with company", a_job(a_task(policies=[{"events": ["*", "PodFailed"], "action": "AbortJob"}])), ("task", "if there's * here")),
    Case("a task's good policies", a_job(a_task(policies=[{"event": "PodFailed", "action": "RestartTask"}, {"exitCode": 2, "action": "AbortJob"}]))),
    # templates
    Case("a negative cpu request", a_job(a_task(template=asking(requests={"cpu": "-1"}))), ("must be greater than or equal to 0",)),
    Case("a negative memory request", a_job(a_task(template=asking(requests={"memory": "-1"}))), ("must be greater than or equal to 0",)),
    Case("requests over limits", a_job(a_task(template=asking(requests={"cpu": "2"}, limits={"cpu": "1500m"}))), ("must be less than or equal to",)),
    Case("requests within limits", a_job(a_task(template=asking(requests={"cpu": "1500m"}, limits={"cpu": 2})))),
    Case("a template without containers", a_job(a_task(template={"spec": {}})), ("spec.tasks[0].template.spec.containers: Required value",)),
    Case("a template with no containers", a_job(a_task(template={"spec": {"containers": []}})), ("template.spec.containers: Required value",)),
    Case("a task without a template", a_job({"name": "a", "replicas": 1}), ("template.spec.containers: Required value",)),
    Case("a container port that is none", a_job(a_task(template=a_template(ports=[{"containerPort": 70000}]))), ("containerPort",), by="webhook"),
    Case("two containers of a name", a_job(a_task(template={"spec": {"containers": [{"name": "a", "image": "i"}] * 2}})), ("Duplicate value",)),
    Case("numa without whole cpus", a_job(a_task(topologyPolicy="restricted", template=asking(requests={"cpu": "1500m"}))), ("must be a whole number above 0",)),
    Case("numa without cpus", a_job(a_task(topologyPolicy="best-effort")), ("must be a whole number above 0",)),
    Case("numa with whole cpus", a_job(a_task(topologyPolicy="single-numa-node", template=asking(requests={"cpu": "2000m"})))),
    Case("numa with limits alone", a_job(a_task(topologyPolicy="restricted", template=asking(limits={"cpu": "2"})))),
    Case("numa none", a_job(a_task(topologyPolicy="none"))),
    Case("a privileged container", a_job(a_task(template=a_template(securityContext={"privileged": True})))),
    # partitions
    Case("no partitions", a_job(a_task(partitionPolicy={"totalPartitions": 0, "partitionSize": 1})), ("totalPartitions in body should be greater than or equal to 1",)),
    Case("empty partitions", a_job(a_task(partitionPolicy={"totalPartitions": 1, "partitionSize": 0})), ("partitionSize in body should be greater than or equal to 1",)),
    Case("partitions that do not add up", a_job(a_task("a", 5, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})), ("'replicas' is not equal to 'totalPartitions'*'partitionSize'",)),
    Case("a minimum that does not add up", a_job(a_task("a", 4, minAvailable=3, partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1})), ("'minAvailable' is not equal to 'minPartitions'*'partitionSize'",)),
    Case("both tiers of a partition", a_job(a_task("a", 2, partitionPolicy={"totalPartitions": 1, "partitionSize": 2, "networkTopology": BOTH_TIERS})), ("the partitionPolicy of task",)),
    Case("partitions that add up", a_job(a_task("a", 4, minAvailable=2, partitionPolicy={"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1}))),
    # volumes
    Case("a mount path twice", volumes({"mountPath": "/a", "volumeClaimName": "x"}, {"mountPath": "/a", "volumeClaimName": "y"}), ("duplicated mountPath",)),
    Case("an empty mount path", volumes({"mountPath": "", "volumeClaimName": "x"}), ("spec.volumes[0].mountPath in body should be at least 1 chars long",)),
    Case("a volume of nothing", volumes({"mountPath": "/a"}), ("either VolumeClaim or VolumeClaimName must be specified",)),
    Case("a claim both old and new", volumes({"mountPath": "/a", "volumeClaimName": "x", "volumeClaim": CLAIM}), ("conflict",)),
    Case("a claim name that is none", volumes({"mountPath": "/a", "volumeClaimName": "X_"}), ("invalid volumeClaimName",)),
    Case("a claim that does not exist", volumes({"mountPath": "/a", "volumeClaimName": "ghost"})),
    Case("a claim to be made", volumes({"mountPath": "/a", "volumeClaim": CLAIM})),
    # queues
    Case("the root queue", a_job(queue="root"), ("can not submit job to root queue",)),
    Case("a queue that is not there", a_job(queue="ghost"), ("queue ghost does not exist",), by="webhook"),
    Case("a queue that is closed", a_job(queue="case-closed"), ("state `Open`",), by="webhook"),
    Case("a queue with children", a_job(queue="case-parent"), ("leaf queue",), by="webhook"),
    Case("a queue that cannot be one", a_job(queue="fakeQueue"), ("spec.queue in body should match",)),
    Case("an open queue", a_job(queue="case-child")),
    # dependencies
    Case("a dependency on oneself", a_job(after("a", "a")), ("not a DAG",)),
    Case("a cycle of two", a_job(after("a", "b"), after("b", "a")), ("not a DAG",)),
    Case("a cycle of three beside others", a_job(a_task("x"), after("y", "x"), after("a", "b", "y"), after("b", "c"), after("c", "a")), ("not a DAG",)),
    Case("an unknown dependency", a_job(after("a", "ghost")), ("which does not exist",)),
    Case("a dependency named twice", a_job(a_task("a"), after("b", "a", "a")), ("twice",)),
    Case("a diamond of tasks", a_job(a_task("a"), after("b", "a"), after("c", "a"), after("d", "b", "c"))),
    Case("a chain of thirty tasks", a_job(a_task("t0"), *(after(f"t{n}", f"t{n - 1}") for n in range(1, 30)))),
    # limits of the definition
    Case("a negative gang", a_job(minAvailable=-1), ("spec.minAvailable in body should be greater than or equal to 0",)),
    Case("negative retries", a_job(maxRetry=-1), ("spec.maxRetry in body should be greater than or equal to 0",)),
    Case("a negative time to live", a_job(ttlSecondsAfterFinished=-1), ("spec.ttlSecondsAfterFinished in body should be greater than or equal to 0",)),
    Case("negative replicas", a_job(a_task(replicas=-1)), ("spec.tasks[0].replicas in body should be greater than or equal to 0",)),
    Case("a negative gang of a task", a_job(a_task(minAvailable=-1)), ("spec.tasks[0].minAvailable in body should be greater than or equal to 0",)),
    Case("a task name that is none", a_job(a_task("Bad_Name")), ("spec.tasks[0].name in body should match",)),
]  # fmt: skip

# -- updates of jobs ----------------------------------------------------------------------------------------------
STANDING = a_job(
    a_task("a", 3, minAvailable=1, policies=[{"event": "PodFailed", "action": "RestartTask", "timeout": "60s"}], template=asking(requests={"cpu": "1"})),
    a_task("b", 2, minAvailable=1),
    name="standing", minAvailable=2, schedulerName="nobody", plugins={"env": []}, runningEstimate="60s",
    volumes=[{"mountPath": "/x", "volumeClaimName": "one"}],
)  # fmt: skip


def changed(*path: str | int, to: Any, job: JSONObject = STANDING) -> JSONObject:
    new = copy.deepcopy(job)
    place = new["spec"]
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = to
    return new


OTHER_FIELDS = ("job updates may not change fields other than",)
UPDATES = [
    Case(title, body, words, by, STANDING)
    for title, body, words, by in (
        ("nothing", copy.deepcopy(STANDING), (), ""),
        ("the gang", changed("minAvailable", to=1), (), ""),
        ("the priority", changed("priorityClassName", to="system-node-critical"), (), ""),
        ("the replicas", changed("tasks", 0, "replicas", to=9), (), ""),
        ("the gang of a task", changed("tasks", 0, "minAvailable", to=2), (), ""),
        ("labels", STANDING | {"metadata": {"name": "standing", "labels": {"a": "b"}, "finalizers": ["x.org/y"]}}, (), ""),
        ("a timeout said otherwise", changed("tasks", 0, "policies", 0, "timeout", to="1m0s"), (), ""),
        ("an amount said otherwise", changed("tasks", 0, "template", to=asking(requests={"cpu": "1000m"})), (), ""),
        ("no policies where there were none", changed("policies", to=[]), (), ""),
        ("the queue", changed("queue", to="case-child"), OTHER_FIELDS, ""),
        ("the scheduler", changed("schedulerName", to="other"), OTHER_FIELDS, ""),
        ("the retries", changed("maxRetry", to=9), OTHER_FIELDS, ""),
        ("the plugins", changed("plugins", to={"env": [], "svc": []}), OTHER_FIELDS, ""),
        ("a plugin's arguments", changed("plugins", to={"env": ["--x"]}), OTHER_FIELDS, ""),
        ("the policies", changed("policies", to=[{"event": "*", "action": "AbortJob"}]), OTHER_FIELDS, ""),
        ("a task's name", changed("tasks", 0, "name", to="z"), OTHER_FIELDS, ""),
        ("a task's policy", changed("tasks", 0, "policies", 0, "action", to="AbortJob"), OTHER_FIELDS, ""),
        ("a task's retries", changed("tasks", 1, "maxRetry", to=8), OTHER_FIELDS, ""),
        ("an image", changed("tasks", 1, "template", "spec", "containers", 0, "image", to="x"), OTHER_FIELDS, ""),
        ("a command", changed("tasks", 1, "template", "spec", "containers", 0, "command", to=["x"]), OTHER_FIELDS, ""),
        ("the host's network", changed("tasks", 1, "template", "spec", "hostNetwork", to=True), OTHER_FIELDS, ""),
        ("an amount", changed("tasks", 0, "template", to=asking(requests={"cpu": "2"})), OTHER_FIELDS, "webhook"),
        ("a timeout", changed("tasks", 0, "policies", 0, "timeout", to="61s"), OTHER_FIELDS, "webhook"),
        ("the time to live", changed("ttlSecondsAfterFinished", to=0), OTHER_FIELDS, ""),
        ("the least successes", changed("minSuccess", to=1), OTHER_FIELDS, ""),
        ("a mount path", changed("volumes", 0, "mountPath", to="/y"), OTHER_FIELDS, ""),
        ("the name of a claim", changed("volumes", 0, "volumeClaimName", to="two"), OTHER_FIELDS, ""),
        ("no volumes", changed("volumes", to=[]), OTHER_FIELDS, ""),
        ("one task less", changed("tasks", to=STANDING["spec"]["tasks"][:1]), ("job updates may not add or remove tasks",), ""),
        ("one task more", changed("tasks", to=[*STANDING["spec"]["tasks"], a_task("c")]), ("job updates may not add or remove tasks",), ""),
        ("a task larger than itself", changed("tasks", 0, "minAvailable", to=4), ("'replicas' in task",), ""),
        ("a gang larger than all", changed("minAvailable", to=6), ("not be greater than total replicas",), ""),
        ("both tiers", changed("networkTopology", to=BOTH_TIERS), (TIERS,), ""),
        ("partitions that do not add up", changed("tasks", 0, "partitionPolicy", to={"totalPartitions": 2, "partitionSize": 2}), ("'replicas' is not equal",), ""),
    )
]  # fmt: skip


# -- queues -------------------------------------------------------------------------------------------------------
def a_queue(name: str = "subject", annotations: JSONObject | None = None, **spec: Any) -> JSONObject:
    metadata = {"name": name, "annotations": annotations or {}}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": metadata,
        "spec": {"weight": 1, **spec},
    }


def annotated(path: str, weights: str) -> JSONObject:
    return a_queue(annotations={HIERARCHY: path, WEIGHTS: weights})


def guaranteed(amount: Any, **spec: Any) -> JSONObject:
    return a_queue(guarantee={"resource": {"cpu": amount}}, **spec)


SAME_LENGTH = ("must have the same length",)
STANDING_QUEUES = [
    a_queue("case-parent"),
    a_queue("case-child", parent="case-parent"),
    a_queue("case-closed"),
    a_queue("case-closing", weight=2),
]
ROOT = {"weight": 1, "reclaimable": False}
QUEUES = [
    Case("a plain queue", a_queue()),
    Case("negative capability", a_queue(capability={"cpu": "-1"}), ("must be greater than or equal to 0",)),
    Case("negative deserved", a_queue(deserved={"memory": "-1Gi"}), ("must be greater than or equal to 0",)),
    Case("negative guarantee", guaranteed("-1", deserved={"cpu": "1"}), ("must be greater than or equal to 0",)),
    Case("half a pod", a_queue(capability={"pods": "1500m"}), ("must be an integer",)),
    Case("half a gpu", a_queue(capability={"nvidia.com/gpu": "0.5"}), ("must be an integer",)),
    Case("guarantee without deserved", guaranteed("1", capability={"cpu": "2"}, priority=3, reclaimable=True)),
    Case("guarantee over capability", guaranteed("2", capability={"cpu": 1}), ("must be <= capability",)),
    Case("guarantee over deserved", guaranteed("2", deserved={"cpu": 1}), ("must be >= guarantee",)),
    Case("deserved over capability", a_queue(deserved={"cpu": "2"}, capability={"cpu": "1500m"}), ("must be <= capability",)),
    Case("a quantity that is none", a_queue(capability={"cpu": "lots"}), ("spec.capability.cpu",)),
    Case("a weight of minus one", a_queue(weight=-1), ("spec.weight in body should be greater than or equal to 1",)),
    Case("a hierarchy without weights", annotated("root/a", ""), SAME_LENGTH),
    Case("weights without a hierarchy", annotated("", "1/2"), SAME_LENGTH),
    Case("a hierarchy of another length", annotated("root/a/b", "1/2"), SAME_LENGTH),
    Case("a one-part path without weights", annotated("root", ""), ("is not a number",)),
    Case("a weight that is no number", annotated("root/a", "1/x"), ("is not a number",)),
    Case("a weight that is nan", annotated("root/a", "1/nan"), ("is not a number",)),
    Case("a weight of nothing", annotated("root/a", "1/0"), ("must be larger than 0",)),
    Case("a negative weight", annotated("root/a", "1/-2"), ("must be larger than 0",)),
    Case("fractional weights", annotated("root/a", "1/0.5")),
    Case("weights as floating point", annotated("root/a", "1e0/.5")),
    Case("all within each other", guaranteed("1", deserved={"cpu": "2"}, capability={"cpu": "3"})),
    Case("deserved of what capability does not limit", a_queue(deserved={"memory": "1Gi"}, capability={"cpu": "3"})),
    Case("whole gpus in another unit", a_queue(capability={"nvidia.com/gpu": "2000m", "pods": "1k"})),
    Case("fractions of a cpu", a_queue(capability={"cpu": "0.5", "memory": "1.5Gi"})),
    Case("its own parent", a_queue(parent="subject"), ("cannot be the parent of itself",)),
    Case("the root as parent", a_queue(parent="root")),
    Case("a parent that is not there", a_queue(parent="ghost"), ("does not exist",), by="webhook"),
    Case("more than the parent deserves", a_queue(parent="case-parent", deserved={"cpu": "1"}), ("total deserved",), by="webhook"),
]  # fmt: skip
QUEUE_UPDATES = [
    Case("a new weight", a_queue("case-child", parent="case-parent", weight=5), old=STANDING_QUEUES[1]),
    Case("deserved over capability", a_queue("case-child", parent="case-parent", deserved={"cpu": "2"}, capability={"cpu": "1"}), ("must be <= capability",), old=STANDING_QUEUES[1]),
    Case("a queue that is closing", a_queue("case-closing", weight=5), ("requestBody.status.state", "queue state must be"), old=STANDING_QUEUES[3]),
    Case("the root's weight", a_queue("root", **ROOT | {"weight": 3}), old=a_queue("root", **ROOT)),
    Case("the root's capability", a_queue("root", **ROOT, capability={"cpu": "1"}), ("of the root queue cannot be changed",), old=a_queue("root", **ROOT)),
    Case("the root's guarantee", a_queue("root", **ROOT, deserved={"cpu": 1}, guarantee={"resource": {"cpu": "1"}}), ("of the root queue cannot be changed",), old=a_queue("root", **ROOT)),
]  # fmt: skip
QUEUE_DELETIONS = [
    Case("the default queue", a_queue("default"), ("queue can not be deleted",)),
    Case("the root queue", a_queue("root"), ("queue can not be deleted",)),
    Case("a queue with children", a_queue("case-parent"), ("child queues: case-child",), by="webhook"),
    Case("a queue without children", a_queue("case-child")),
]


# -- the others ---------------------------------------------------------------------------------------------------
def a_group(**spec: Any) -> JSONObject:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "subject"},
        "spec": {"minMember": 1, **spec},
    }


def a_pod(annotations: JSONObject | None = None, **spec: Any) -> JSONObject:
    full = {"containers": [{"name": "c", "image": "i"}], "schedulerName": "volcano", **spec}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "subject", "annotations": annotations or {}},
        "spec": full,
    }


def a_flow(**steps: list[str]) -> JSONObject:
    flows = [
        {"name": name, **({"dependsOn": {"targets": targets}} if targets else {})} for name, targets in steps.items()
    ]
    return {
        "apiVersion": "flow.volcano.sh/v1alpha1",
        "kind": "JobFlow",
        "metadata": {"name": "subject"},
        "spec": {"flows": flows},
    }


def a_cronjob(schedule: str = "*/5 * * * *", name: str = "subject", **spec: Any) -> JSONObject:
    template = {"spec": a_job()["spec"]}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": name},
        "spec": {"schedule": schedule, "jobTemplate": template, **spec},
    }


def a_hypernode(*selectors: JSONObject, **more: Any) -> JSONObject:
    members = [{"type": "Node", "selector": selector} for selector in selectors]
    spec = {"tier": 1, **({"members": members} if members else {}), **more}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": "subject"},
        "spec": spec,
    }


def matching(pattern: str) -> JSONObject:
    return a_hypernode({"exactMatch": {"name": "n1"}}, {"regexMatch": {"pattern": pattern}})


TWICE = a_flow(a=["ghost"])
TWICE["spec"]["flows"].append({"name": "a"})
NOT_DAG = "jobflow Flow is not DAG"
BUDGET = ("must be a positive integer",)
PART = ("percentage which between 1% ~ 99%",)
PATTERN = ("member regexMatch pattern is invalid", "regexMatch.pattern")
OTHERS = [
    Case("a group with both tiers", a_group(networkTopology=BOTH_TIERS), (TIERS,)),
    Case("a group with one tier", a_group(networkTopology={"highestTierAllowed": 1})),
    Case("a sub-group with both tiers", a_group(subGroupPolicy=[{"name": "fine"}, {"name": "bad", "networkTopology": BOTH_TIERS}]), (TIERS, "subGroupPolicy")),
    Case("a group in a queue that is not there", a_group(queue="ghost"), ("queue ghost does not exist",), by="webhook"),
    Case("a group in a queue that is closed", a_group(queue="case-closed"), ("state `Open`",), by="webhook"),
    *(Case(f"a budget of {value!r}", a_pod({key: value}), words) for key in (MIN, MAX) for value, words in (
        ("0", BUDGET), ("-3", BUDGET), ("0%", PART), ("100%", PART), ("-5%", PART), ("many", ("invalid value", "jdb-")), ("", ("invalid value", "jdb-")),
        ("1.5", ("invalid value", "jdb-")), ("1", ()), ("25", ()), ("+3", ()), ("007", ()), ("1%", ()), ("99%", ()),
    )),
    Case("two budgets", a_pod({MIN: "1", MAX: "1"}), ("not allow configure multiple annotations",)),
    Case("another scheduler's pod", a_pod({MIN: "0"}, schedulerName="default-scheduler")),
    Case("an empty flow", a_flow()),
    Case("a diamond", a_flow(a=[], b=["a"], c=["a"], d=["b", "c"])),
    Case("a flow of forty steps", a_flow(s0=[], **{f"s{n}": [f"s{n - 1}"] for n in range(1, 40)})),
    Case("a step that waits for itself", a_flow(a=["a"]), (NOT_DAG,)),
    Case("a cycle of three", a_flow(start=["a"], a=["b"], b=["c"], c=["a"]), (NOT_DAG, "cycle")),
    Case("an unknown target", a_flow(a=["ghost"]), (NOT_DAG, "vertex is not defined")),
    Case("of two steps of a name the later counts", TWICE),
    *(Case(f"the schedule {text}", a_cronjob(text)) for text in ("* * * * *", "@daily", "@every 1h30m", "0 0 ? * mon-fri", "0 0 1,15 jan-jun *")),
    *(Case(f"the schedule {text!r}", a_cronjob(text), ("spec.schedule", words), by) for text, words, by in (
        ("", "Required value", ""), ("TZ=UTC * * * * *", "use timeZone instead", ""), ("CRON_TZ=Asia/Tokyo 0 5 * * *", "use timeZone instead", ""),
        ("* * * *", "expected exactly 5 fields", ""), ("* * * * * *", "expected exactly 5 fields", ""), ("hourly", "expected exactly 5 fields", ""),
        ("@fortnightly", "unrecognized descriptor", ""), ("@every soon", "failed to parse duration", ""),
        ("60 * * * *", "above maximum", "webhook"), ("* * * * 7", "above maximum", "webhook"),
    )),
    *(Case(f"the zone {zone}", a_cronjob(timeZone=zone)) for zone in ("UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5")),
    *(Case(f"the zone {zone!r}", a_cronjob(timeZone=zone), ("spec.timeZone: ",)) for zone in (
        "", "Local", "local", ".", "..", "Europe/../UTC", "-UTC", "Europe/-x", "Europe//Berlin", "a" * 15, "Eu rope/x", "/etc/passwd")),
    Case("a zone nobody knows", a_cronjob(timeZone="Nowhere/Land"), ("spec.timeZone: ",), by="webhook"),
    Case("a name with room for the minute", a_cronjob(name="c" * 52)),
    Case("a name without", a_cronjob(name="c" * 53), ("must be no more than 52 characters",)),
    Case("a hypernode of one", a_hypernode({"exactMatch": {"name": "node-1.x"}})),
    Case("a hypernode by labels", a_hypernode({"labelMatch": {"matchLabels": {"a": "b"}}})),
    Case("a hypernode of none", a_hypernode(), ("members",)),
    Case("two selectors", a_hypernode({"exactMatch": {"name": "a"}, "regexMatch": {"pattern": "b"}}), ("members[0].selector",)),
    Case("no selector", a_hypernode({}), ("members[0].selector",)),
    Case("an empty name", a_hypernode({"exactMatch": {"name": ""}}), ("selector.exactMatch.name in body should be at least 1 chars long",)),
    Case("a name that is none", a_hypernode({"exactMatch": {"name": "A_"}}), ("selector.exactMatch.name in body should match",)),
    Case("an empty pattern", matching(""), ("selector.regexMatch.pattern in body should be at least 1 chars long",)),
    *(Case(f"the pattern {text}", matching(text)) for text in ("^node-[0-9]+$", "(a|b)+?", r"n\.x\\1", r"a\(b", "a[(]b", "[[]")),
    *(Case(f"the pattern {text!r}", matching(text), PATTERN) for text in ("node-[", "(", "*a", "a{2,1}", "(?=a)b", "(?<!a)b", r"(a)\1", "a++", "(?P=n)")),
]  # fmt: skip
