"""The causes: each plants one into a cluster with other load, and says what the explanation must say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.planted.plain_cluster import PlainCluster, a_job
from volcano.api.why.tiers import Tier

GPU = "nvidia.com/gpu"
ZONE = "topology.kubernetes.io/zone"
YOU, ADMIN, EVENT, TURN, FAILING = Tier.YOU, Tier.ADMINISTRATOR, Tier.EVENT, Tier.TURN, Tier.FAILING
WITH_PREEMPT = """
actions: "enqueue, allocate, backfill, preempt, reclaim"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins: [{name: overcommit}, {name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}]
"""
WITH_TOPOLOGY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: drf}, {name: predicates}, {name: proportion}, {name: nodeorder}, {name: network-topology-aware}]
"""


@dataclass
class Expected:
    """What must be said: the reason, its tier, facts; whether a change is offered, and whether it makes the job run."""

    reason: str
    tier: Tier
    facts: dict[str, Any] = field(default_factory=dict)
    change: bool = True
    runs: bool = True  # applying the first change makes the job run
    least: int = 1  # pods that must have a node then
    kind: str = "vcjob"
    of_others: bool = False  # another job is the cause, which counts only when this one could run


Planter = Callable[[Random, PlainCluster], Expected]
CAUSES: dict[str, Planter] = {}


def cause(plant: Planter) -> Planter:
    CAUSES[plant.__name__] = plant
    return plant


def background(rng: Random) -> PlainCluster:
    """Nodes of equal size with labels, other queues, and jobs of others that leave at least half of each node free."""
    cluster = PlainCluster()
    cpu = rng.choice([8, 16, 32])
    zones = [f"zone-{letter}" for letter in "abc"[: rng.randint(1, 3)]]
    for number in range(rng.randint(3, 7)):
        labels = {ZONE: zones[number % len(zones)], "pool": rng.choice(["batch", "batch", "web"]), "disk": "ssd"}
        cluster.node(f"node-{number}", cpu, cpu * 4, labels=labels)
    cluster.get("Node", "node-0")["metadata"]["labels"]["pool"] = "batch"
    cluster.queue("default")
    for name in rng.sample(["research", "team-a", "team-b"], rng.randint(0, 2)):
        cluster.queue(name, weight=rng.randint(1, 4))
    for value in (10, 100):
        cluster.put("PriorityClass", {"metadata": {"name": f"p{value}"}, "value": value})
    nodes = [node["metadata"]["name"] for node in cluster.every("Node")]
    for number in range(rng.randint(0, 3)):
        chosen = rng.sample(nodes, rng.randint(1, min(3, len(nodes))))
        cluster.running(f"other-{number}", chosen, {"cpu": str(max(1, cpu // 8)), "memory": "1Gi"})
    return cluster


def nodes_of(cluster: PlainCluster) -> list[str]:
    return [node["metadata"]["name"] for node in cluster.every("Node")]


def cpus(cluster: PlainCluster) -> int:
    return int(cluster.get("Node", "node-0")["status"]["allocatable"]["cpu"])


def submit(rng: Random, cluster: PlainCluster, job: dict[str, Any], **how: Any) -> None:
    """Its pods exist, or its PodGroup has not been let in yet: the explanation must not depend on that."""
    if not how and rng.random() < 0.3:
        how = {"pods": False, "phase": "Pending"}
    cluster.submit(job, **how)


def fill(cluster: PlainCluster, cpu: int, *, names: list[str] | None = None, **more: Any) -> None:
    """A job of others takes so many cpus of each node, so that they have no more free than that leaves."""
    for node in names or nodes_of(cluster):
        free = cpus(cluster) - used(cluster, node)
        if free > cpu:
            cluster.running(f"filler-{node}", [node], {"cpu": str(free - cpu)}, **more)


def used(cluster: PlainCluster, node: str) -> int:
    pods = [pod for pod in cluster.every("Pod") if pod["spec"].get("nodeName") == node]
    return sum(int(pod["spec"]["containers"][0]["resources"]["requests"]["cpu"]) for pod in pods)


def free_of(cluster: PlainCluster, node: str) -> int:
    return cpus(cluster) - used(cluster, node)


# -- the pods' conditions ---------------------------------------------------------------------------------------------
@cause
def label_value_misspelt(rng: Random, cluster: PlainCluster) -> Expected:
    wrong = rng.choice(["batchh", "bach", "btach"])
    submit(rng, cluster, a_job(1, spec={"nodeSelector": {"pool": wrong}}))
    return Expected("NoNodeHasLabel", YOU, {"term": f"pool={wrong}", "meant": "; did you mean pool=batch?"})


@cause
def label_key_misspelt(rng: Random, cluster: PlainCluster) -> Expected:
    wrong = rng.choice(["dsk", "disc", "diskk"])
    submit(rng, cluster, a_job(rng.randint(1, 3), spec={"nodeSelector": {wrong: "ssd"}}))
    return Expected("NoNodeHasLabel", YOU, {"term": f"{wrong}=ssd"})


@cause
def label_that_no_node_has(rng: Random, cluster: PlainCluster) -> Expected:
    submit(rng, cluster, a_job(1, spec={"nodeSelector": {"gpu-model": "qqq9"}}))
    return Expected("NoNodeHasLabel", YOU, {"term": "gpu-model=qqq9"})


@cause
def labels_that_no_node_has_together(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.get("Node", "node-0")["metadata"]["labels"]["rack"] = "r1"
    cluster.get("Node", "node-1")["metadata"]["labels"]["row"] = "w2"
    submit(rng, cluster, a_job(1, spec={"nodeSelector": {"rack": "r1", "row": "w2"}}))
    return Expected("NoNodeHasLabels", YOU)


@cause
def node_affinity_that_matches_nothing(rng: Random, cluster: PlainCluster) -> Expected:
    terms = [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["tape"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    submit(rng, cluster, a_job(rng.randint(1, 3), spec={"affinity": affinity}))
    return Expected("NoNodeInAffinity", YOU, {"term": "disk In tape"})


@cause
def taint_on_every_node(rng: Random, cluster: PlainCluster) -> Expected:
    for node in cluster.every("Node"):
        node["spec"]["taints"] = [{"key": "dedicated", "value": "infra", "effect": "NoSchedule"}]
    submit(rng, cluster, a_job(rng.randint(1, 3)))
    count = len(nodes_of(cluster))
    return Expected(
        "TaintNotTolerated", YOU, {"taint": "dedicated=infra:NoSchedule", "count": count, "suitable": count}
    )


@cause
def taint_on_the_nodes_that_have_the_device(rng: Random, cluster: PlainCluster) -> Expected:
    for number in range(2):
        cluster.node(f"gpu-{number}", 8, 32, devices={GPU: "4"}, taints=[{"key": "gpu-only", "effect": "NoSchedule"}])
    submit(rng, cluster, a_job(1, {"cpu": "1", GPU: "1"}))
    return Expected("TaintNotTolerated", YOU, {"taint": "gpu-only:NoSchedule", "count": 2, "suitable": 2})


@cause
def resource_misspelt(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.node("gpu-0", 16, 64, devices={GPU: "8"})
    submit(rng, cluster, a_job(1, {"cpu": "1", "nvidia.com/gpus": "1"}))
    return Expected("NoNodeHasResource", YOU, {"resource": "nvidia.com/gpus", "meant": f"; did you mean {GPU}?"})


@cause
def resource_that_no_node_has(rng: Random, cluster: PlainCluster) -> Expected:
    submit(rng, cluster, a_job(1, {"cpu": "1", "example.org/quantum": "1"}))
    return Expected("NoNodeHasResource", YOU, {"resource": "example.org/quantum"}, change=False)


@cause
def pod_larger_than_every_node(rng: Random, cluster: PlainCluster) -> Expected:
    wanted = cpus(cluster) + rng.randint(1, 20)
    submit(rng, cluster, a_job(1, {"cpu": str(wanted)}))
    facts = {"needed": str(wanted), "resource": "cpu", "most": str(cpus(cluster))}
    return Expected("PodTooLarge", YOU, facts)


@cause
def pod_with_more_memory_than_every_node(rng: Random, cluster: PlainCluster) -> Expected:
    wanted = cpus(cluster) * 4 + rng.randint(1, 64)
    submit(rng, cluster, a_job(rng.randint(1, 2), {"cpu": "1", "memory": f"{wanted}Gi"}))
    facts = {"needed": f"{wanted}Gi", "resource": "memory", "most": f"{cpus(cluster) * 4}Gi"}
    return Expected("PodTooLarge", YOU, facts)


@cause
def selected_nodes_too_small(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.node("small-0", 2, 8, labels={"size": "small"})
    submit(rng, cluster, a_job(1, {"cpu": "4"}, {"nodeSelector": {"size": "small"}}))
    return Expected("PodTooLarge", YOU, {"needed": "4", "most": "2", "suitable": 1})


@cause
def gang_larger_than_the_cluster(rng: Random, cluster: PlainCluster) -> Expected:
    each = max(1, cpus(cluster) // 4)
    holds = len(nodes_of(cluster)) * (cpus(cluster) // each)
    needed = holds + rng.randint(1, 5)
    submit(rng, cluster, a_job(needed, {"cpu": str(each)}))
    return Expected("GangTooLarge", YOU, {"needed": needed, "holds": holds})


@cause
def more_nodes_needed_than_there_are(rng: Random, cluster: PlainCluster) -> Expected:
    each = cpus(cluster) * 3 // 4
    suit = len(nodes_of(cluster))
    needed = suit + rng.randint(1, 3)
    for key in [key for key in cluster.objects if key[0] in ("Pod", "PodGroup")]:
        del cluster.objects[key]
    submit(rng, cluster, a_job(needed, {"cpu": str(each)}))
    return Expected("TooFewNodes", YOU, {"needed": needed, "suit": suit})


@cause
def anti_affinity_on_too_few_nodes(rng: Random, cluster: PlainCluster) -> Expected:
    term = {"labelSelector": {"matchLabels": {"app": "demo"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    most = len(nodes_of(cluster))
    needed = most + rng.randint(1, 3)
    submit(rng, cluster, a_job(needed, {"cpu": "1"}, {"affinity": affinity}))
    return Expected("AntiAffinityLimit", YOU, {"most": most, "needed": needed, "key": "node"})


@cause
def host_port_on_too_few_nodes(rng: Random, cluster: PlainCluster) -> Expected:
    port = rng.randint(8000, 9000)
    most = len(nodes_of(cluster))
    needed = most + rng.randint(1, 3)
    container = {"ports": [{"containerPort": 80, "hostPort": port}]}
    submit(rng, cluster, a_job(needed, {"cpu": "1"}, container=container))
    return Expected("HostPortLimit", YOU, {"most": most, "needed": needed, "port": str(port)})


@cause
def affinity_to_a_pod_that_does_not_exist(rng: Random, cluster: PlainCluster) -> Expected:
    term = {"labelSelector": {"matchLabels": {"app": "database"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    submit(rng, cluster, a_job(rng.randint(1, 2), {"cpu": "1"}, {"affinity": affinity}))
    return Expected("NoPodNear", YOU)


@cause
def spread_over_a_key_that_no_node_has(rng: Random, cluster: PlainCluster) -> Expected:
    constraint = {"maxSkew": 1, "topologyKey": "example.org/rack", "whenUnsatisfiable": "DoNotSchedule",
                  "labelSelector": {"matchLabels": {"app": "demo"}}}  # fmt: skip
    submit(rng, cluster, a_job(2, {"cpu": "1"}, {"topologySpreadConstraints": [constraint]}))
    return Expected("SpreadKeyMissing", YOU, {"key": "example.org/rack"})


@cause
def tier_too_small(rng: Random, cluster: PlainCluster) -> Expected:
    for key in [key for key in cluster.objects if key[0] in ("Pod", "PodGroup")]:
        del cluster.objects[key]
    cluster.config_text = WITH_TOPOLOGY
    names, size = nodes_of(cluster)[:3], cpus(cluster)
    for number, name in enumerate(names):
        member = {"type": "Node", "selector": {"exactMatch": {"name": name}}}
        cluster.put("HyperNode", {"metadata": {"name": f"s{number}"}, "spec": {"tier": 1, "members": [member]}})
    members = [{"type": "HyperNode", "selector": {"exactMatch": {"name": f"s{n}"}}} for n in range(len(names))]
    cluster.put("HyperNode", {"metadata": {"name": "top"}, "spec": {"tier": 2, "members": members}})
    each, pods = size // 2, 3
    submit(rng, cluster, a_job(pods, {"cpu": str(each)}, networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    facts = {"tier": 1, "needed": str(pods * each), "most": str(size), "better": "; at tier 2 it fits"}
    return Expected("TierTooSmall", YOU, facts)


# -- objects that do not exist ----------------------------------------------------------------------------------------
@cause
def claim_that_does_not_exist(rng: Random, cluster: PlainCluster) -> Expected:
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data-x"}}
    submit(rng, cluster, a_job(1, spec={"volumes": [volume]}))
    return Expected("ClaimNotFound", YOU, {"claim": "data-x"})


@cause
def claim_of_an_unknown_class(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.put("PersistentVolumeClaim", {
        "metadata": {"name": "data", "namespace": "default"},
        "spec": {"storageClassName": "fastt", "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    })  # fmt: skip
    cluster.put("StorageClass", {"metadata": {"name": "fast"}, "provisioner": "example.org/disk"})
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    submit(rng, cluster, a_job(1, spec={"volumes": [volume]}))
    facts = {"claim": "data", "class_name": "fastt", "meant": "; did you mean fast?"}
    return Expected("StorageClassNotFound", YOU, facts, change=False)


@cause
def priority_class_misspelt(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.put("PriorityClass", {"metadata": {"name": "important"}, "value": 7})
    submit(rng, cluster, a_job(1, priorityClassName="importnat"), pods=False, phase="Pending")
    return Expected("PriorityClassNotFound", YOU, {"name": "importnat", "meant": "; did you mean important?"})


@cause
def queue_misspelt(rng: Random, cluster: PlainCluster) -> Expected:
    submit(rng, cluster, a_job(1, queue="defalt"), pods=False, phase="Pending")
    return Expected("QueueNotFound", YOU, {"queue": "defalt", "meant": "; did you mean default?"})


@cause
def queue_that_does_not_exist(rng: Random, cluster: PlainCluster) -> Expected:
    submit(rng, cluster, a_job(1, queue="zzz"), pods=False, phase="Pending")
    return Expected("QueueNotFound", YOU, {"queue": "zzz"})


@cause
def scheduler_misspelt(rng: Random, cluster: PlainCluster) -> Expected:
    submit(rng, cluster, a_job(1, schedulerName="volcanoo"), pods=rng.random() < 0.5)
    return Expected("UnknownScheduler", YOU, {"scheduler": "volcanoo", "meant": "; did you mean volcano?"})


@cause
def service_account_that_does_not_exist(rng: Random, cluster: PlainCluster) -> Expected:
    submit(rng, cluster, a_job(1, spec={"serviceAccountName": "builder"}), pods=False)
    refuse(cluster, 'pods "demo-worker-0" is forbidden: error looking up service account default/builder: '
                    'serviceaccount "builder" not found')  # fmt: skip
    return Expected("ServiceAccountNotFound", YOU, {"name": "builder"}, runs=False)


def refuse(cluster: PlainCluster, message: str) -> None:
    cluster.events.append({
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Job", "name": "demo", "namespace": "default"},
        "reason": "FailedCreate", "type": "Warning", "lastTimestamp": "2026-01-01T11:59:00Z",
        "message": f"Failed to create Pod default/demo-worker-0: {message}",
    })  # fmt: skip


@cause
def outside_a_limit_range(rng: Random, cluster: PlainCluster) -> Expected:
    submit(rng, cluster, a_job(1, {"cpu": "4"}), pods=False)
    refuse(cluster, 'pods "demo-worker-0" is forbidden: maximum cpu usage per Container is 2, but request is 4')
    facts = {"message": "maximum cpu usage per Container is 2, but request is 4"}
    return Expected("OutsideLimitRange", YOU, facts, change=False)


@cause
def webhook_that_refuses(rng: Random, cluster: PlainCluster) -> Expected:
    submit(rng, cluster, a_job(1), pods=False)
    refuse(cluster, 'admission webhook "policy.example.org" denied the request: images need a digest')
    return Expected("PodsRefused", YOU, {"message": "images need a digest"}, change=False)


# -- quotas -----------------------------------------------------------------------------------------------------------
@cause
def quota_smaller_than_the_job(rng: Random, cluster: PlainCluster) -> Expected:
    hard = rng.randint(1, 3)
    needed = hard + rng.randint(1, 3)
    quota(cluster, {"pods": str(hard)}, {"pods": str(hard)})
    submit(rng, cluster, a_job(needed, {"cpu": "1"}), only=hard)
    refuse(
        cluster, f"pods is forbidden: exceeded quota: rq, requested: pods=1, used: pods={hard}, limited: pods={hard}"
    )
    facts = {"quota": "rq", "used": str(hard), "hard": str(hard), "needed": str(needed)}
    return Expected("QuotaTooSmall", YOU, facts)


@cause
def quota_used_by_others(rng: Random, cluster: PlainCluster) -> Expected:
    quota(cluster, {"requests.cpu": "20"}, {"requests.cpu": "19"})
    submit(rng, cluster, a_job(2, {"cpu": "2"}), pods=False)
    refuse(cluster, "pods is forbidden: exceeded quota: rq, requested: requests.cpu=2, used: requests.cpu=19, "
                    "limited: requests.cpu=20")  # fmt: skip
    facts = {"quota": "rq", "used": "19", "hard": "20", "needed": "4", "resource": "requests.cpu"}
    return Expected("QuotaUsed", TURN, facts)


def quota(cluster: PlainCluster, hard: dict[str, str], used_now: dict[str, str]) -> None:
    cluster.put("ResourceQuota", {
        "metadata": {"name": "rq", "namespace": "default"}, "spec": {"hard": hard},
        "status": {"hard": dict(hard), "used": used_now},
    })  # fmt: skip


# -- queues -----------------------------------------------------------------------------------------------------------
@cause
def queue_closed(rng: Random, cluster: PlainCluster) -> Expected:
    state = rng.choice(["Closed", "Closing"])
    cluster.queue("shut", state)
    submit(rng, cluster, a_job(rng.randint(1, 2), queue="shut"))
    return Expected("QueueClosed", ADMIN, {"queue": "shut", "state": state})


@cause
def queue_smaller_than_the_job(rng: Random, cluster: PlainCluster) -> Expected:
    limit = rng.randint(1, 3)
    needed = limit + rng.randint(1, 2)
    cluster.queue("small", capability={"cpu": str(limit)})
    submit(rng, cluster, a_job(needed, {"cpu": "1"}, queue="small"))
    return Expected("QueueTooSmall", YOU, {"queue": "small", "limit": str(limit), "needed": str(needed)})


@cause
def another_queue_is_guaranteed_too_much(rng: Random, cluster: PlainCluster) -> Expected:
    total = len(nodes_of(cluster)) * cpus(cluster)
    each = max(1, cpus(cluster) // 4)
    pods = rng.randint(3, 4)
    left = pods * each - 1
    cluster.queue("reserved", guarantee={"resource": {"cpu": str(total - left)}})
    submit(rng, cluster, a_job(pods, {"cpu": str(each)}))
    facts = {"holder": "reserved", "guaranteed": str(total - left), "left": str(left), "needed": str(pods * each)}
    return Expected("OthersGuaranteed", YOU, facts)


@cause
def queue_full(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.queue("full", capability={"cpu": "3"})
    cluster.running("holder", ["node-0"], {"cpu": "2"}, queue="full")
    submit(rng, cluster, a_job(2, {"cpu": "1"}, queue="full"))
    return Expected("QueueFull", TURN, {"queue": "full", "held": "2", "limit": "3", "needed": "2"})


@cause
def queue_above_its_share(rng: Random, cluster: PlainCluster) -> Expected:
    """Two queues of equal weight ask for more than there is; one holds all it deserves."""
    for key in [key for key in cluster.objects if key[0] in ("Pod", "PodGroup")]:
        del cluster.objects[key]
    size, nodes = cpus(cluster), nodes_of(cluster)
    cluster.queue("greedy")
    cluster.queue("modest")
    for number, node in enumerate(nodes):
        cluster.running(f"mine-{number}", [node], {"cpu": str(size // 2)}, queue="greedy")
        theirs = a_job(3, {"cpu": str(size // 2)}, name=f"theirs-{number}", queue="modest", least=3)
        theirs["spec"]["tasks"][0]["template"]["spec"]["schedulingGates"] = [{"name": "example.org/hold"}]
        cluster.submit(theirs)
    submit(rng, cluster, a_job(1, {"cpu": "1"}, queue="greedy"), pods=True)
    held = len(nodes) * (size // 2)
    return Expected("QueueAboveShare", TURN, {"queue": "greedy", "held": str(held), "share": str(held)}, change=True)


# -- nodes ------------------------------------------------------------------------------------------------------------
@cause
def nodes_cordoned(rng: Random, cluster: PlainCluster) -> Expected:
    for node in cluster.every("Node"):
        node["spec"]["unschedulable"] = True
    submit(rng, cluster, a_job(rng.randint(1, 3)))
    count = len(nodes_of(cluster))
    return Expected("NodesCordoned", ADMIN, {"count": count, "suitable": count})


@cause
def the_only_node_with_the_label_is_cordoned(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.node("special", 8, 32, labels={"kind": "special"}, cordoned=True)
    submit(rng, cluster, a_job(1, spec={"nodeSelector": {"kind": "special"}}))
    return Expected("NodesCordoned", ADMIN, {"count": 1, "suitable": 1, "nodes": "special"})


@cause
def nodes_not_ready(rng: Random, cluster: PlainCluster) -> Expected:
    for node in cluster.every("Node"):
        node["spec"]["taints"] = [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
    submit(rng, cluster, a_job(1))
    return Expected("NodesNotReady", ADMIN, {"count": len(nodes_of(cluster))}, change=False)


@cause
def node_that_does_not_exist(rng: Random, cluster: PlainCluster) -> Expected:
    submit(rng, cluster, a_job(1), pods=True)
    pod = next(pod for pod in cluster.every("Pod") if pod["metadata"]["name"].startswith("demo"))
    pod["spec"]["nodeName"] = "node-99"
    return Expected("NodeNotFound", YOU, {"node": "node-99"}, change=False)


# -- events that will come --------------------------------------------------------------------------------------------
@cause
def scheduling_gate(rng: Random, cluster: PlainCluster) -> Expected:
    job = a_job(rng.randint(1, 3), spec={"schedulingGates": [{"name": "example.com/quota-check"}]})
    submit(rng, cluster, job, pods=True)
    return Expected("SchedulingGate", EVENT, {"gate": "example.com/quota-check"}, change=False)


@cause
def gang_that_needs_a_later_task(rng: Random, cluster: PlainCluster) -> Expected:
    job = a_job(2)
    first = job["spec"]["tasks"][0]
    first["minAvailable"] = 2  # as admission sets it
    later = {"name": "second", "replicas": 1, "minAvailable": 1, "dependsOn": {"name": ["worker"]}}
    job["spec"]["tasks"].append({**first, **later})
    job["spec"]["minAvailable"] = 3
    submit(rng, cluster, job, pods=True)
    return Expected("GangNeedsLaterTask", YOU, {"needed": 3, "task": "second", "before": 2}, least=2)


@cause
def room_that_others_are_leaving(rng: Random, cluster: PlainCluster) -> Expected:
    size = cpus(cluster)
    for key in [key for key in cluster.objects if key[0] in ("Pod", "PodGroup")]:
        del cluster.objects[key]
    for node in nodes_of(cluster):
        leaving = node == "node-0"
        cluster.running(f"big-{node}", [node], {"cpu": str(size)}, leaving=leaving)
    submit(rng, cluster, a_job(1, {"cpu": "1"}), pods=True)
    return Expected("RoomPromised", EVENT, {"nodes": "node-0", "pods": "big-node-0-worker-0"}, change=False)


@cause
def suspended(rng: Random, cluster: PlainCluster) -> Expected:
    job = a_job(1)
    job["status"] = {"state": {"phase": "Aborted"}}
    submit(rng, cluster, job, pods=False, phase="Pending")
    return Expected("Suspended", YOU)


# -- room -------------------------------------------------------------------------------------------------------------
@cause
def no_node_has_room(rng: Random, cluster: PlainCluster) -> Expected:
    left = max(1, cpus(cluster) // 4)
    fill(cluster, left)
    wanted = left + 1
    submit(rng, cluster, a_job(1, {"cpu": str(wanted)}))
    most = max(free_of(cluster, node) for node in nodes_of(cluster))
    total = sum(free_of(cluster, node) for node in nodes_of(cluster))
    facts = {"needed": str(wanted), "resource": "cpu", "most": str(most), "total": str(total)}
    return Expected("NoRoomOnOneNode", TURN, facts)


@cause
def not_enough_room_for_the_gang(rng: Random, cluster: PlainCluster) -> Expected:
    left = max(1, cpus(cluster) // 4)
    fill(cluster, left)
    total = sum(free_of(cluster, node) for node in nodes_of(cluster))
    pods = total + rng.randint(1, 2)
    submit(rng, cluster, a_job(pods, {"cpu": "1"}))
    facts = {"needed": str(pods), "resource": "cpu", "pods": pods, "total": str(total)}
    return Expected("NotEnoughRoom", TURN, facts)


@cause
def host_port_in_use(rng: Random, cluster: PlainCluster) -> Expected:
    container = {"ports": [{"containerPort": 80, "hostPort": 8080}]}
    for node in nodes_of(cluster):
        cluster.running(f"web-{node}", [node], {"cpu": "1"}, container=container)
    submit(rng, cluster, a_job(1, {"cpu": "1"}, container=container))
    return Expected("HostPortsInUse", TURN, {"port": "8080"})


@cause
def nodes_with_all_their_pods(rng: Random, cluster: PlainCluster) -> Expected:
    for node in cluster.every("Node"):
        name = node["metadata"]["name"]
        count = sum(pod["spec"].get("nodeName") == name for pod in cluster.every("Pod"))
        if count == 0:
            cluster.running(f"one-{name}", [name], {"cpu": "1"})
            count = 1
        for amounts in (node["status"]["allocatable"], node["status"]["capacity"]):
            amounts["pods"] = str(count)
    submit(rng, cluster, a_job(1, {"cpu": "1"}))
    return Expected("PodNumberReached", TURN, change=False)


@cause
def some_run_and_the_rest_follow(rng: Random, cluster: PlainCluster) -> Expected:
    left = 1
    fill(cluster, left)
    nodes = nodes_of(cluster)
    pods = len(nodes) + 2
    job = a_job(pods, {"cpu": "1"}, least=1)
    job["status"] = {"state": {"phase": "Running"}}
    cluster.submit(job, phase="Running")
    waiting = [pod for pod in cluster.every("Pod") if pod["metadata"]["name"].startswith("demo")]
    for pod, node in zip(waiting, nodes, strict=False):
        pod["spec"]["nodeName"], pod["status"] = node, {"phase": "Running"}
    facts = {"running": len(nodes), "pods": pods, "waiting": 2}
    return Expected("SomeRun", TURN, facts, change=False)


# -- room that may not be taken ---------------------------------------------------------------------------------------
def outranked(rng: Random, cluster: PlainCluster, **more: Any) -> None:
    """Every node is full of a less important job of the same queue, which could give up pods."""
    for key in [key for key in cluster.objects if key[0] in ("Pod", "PodGroup")]:
        del cluster.objects[key]
    nodes = nodes_of(cluster)
    cluster.running("low", nodes, {"cpu": str(cpus(cluster))}, priority=10, least=1, **more)
    job = a_job(1, {"cpu": "1"}, priorityClassName="p100")
    cluster.submit(job, phase="Inqueue")


@cause
def no_action_preempt(rng: Random, cluster: PlainCluster) -> Expected:
    outranked(rng, cluster)
    return Expected("NoPreemptAction", TURN, {"victims": "low"})


@cause
def victims_not_preemptable(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.config_text = WITH_PREEMPT
    outranked(rng, cluster, annotations={"volcano.sh/preemptable": "false"})
    return Expected("VictimNotPreemptable", TURN, {"victims": "low"})


@cause
def preemption_policy_never(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.config_text = WITH_PREEMPT
    outranked(rng, cluster)
    template = cluster.jobs["demo"]["spec"]["tasks"][0]["template"]
    template["spec"]["preemptionPolicy"] = "Never"
    for pod in cluster.every("Pod"):
        if pod["metadata"]["name"].startswith("demo"):
            pod["spec"]["preemptionPolicy"] = "Never"
    return Expected("NeverPreempts", TURN, {"victims": "low"})


@cause
def queue_not_reclaimable(rng: Random, cluster: PlainCluster) -> Expected:
    for key in [key for key in cluster.objects if key[0] in ("Pod", "PodGroup")]:
        del cluster.objects[key]
    cluster.config_text = WITH_PREEMPT
    cluster.queue("hoarder", reclaimable=False)
    cluster.running("hoard", nodes_of(cluster), {"cpu": str(cpus(cluster))}, queue="hoarder")
    cluster.submit(a_job(1, {"cpu": "1"}), phase="Inqueue")
    return Expected("QueueNotReclaimable", TURN, {"victims": "hoard", "queue": "hoarder"})


# -- after placement --------------------------------------------------------------------------------------------------
def placed(cluster: PlainCluster, job: dict[str, Any], status: dict[str, Any], phase: str = "Pending") -> None:
    job["status"] = {"state": {"phase": "Running" if phase == "Running" else "Pending"}}
    cluster.submit(job, phase="Running")
    for pod in cluster.every("Pod"):
        if pod["metadata"]["name"].startswith("demo"):
            pod["spec"]["nodeName"] = "node-0"
            pod["status"] = {"phase": phase, "containerStatuses": [{"name": "c", **status}]}


@cause
def secret_that_does_not_exist(rng: Random, cluster: PlainCluster) -> Expected:
    env = [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "creds", "key": "a"}}}]
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "creds" not found'}
    placed(cluster, a_job(1, container={"env": env}), {"state": {"waiting": waiting}})
    return Expected("SecretNotFound", YOU, {"name": "creds", "node": "node-0"}, runs=False)


@cause
def config_map_that_does_not_exist(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.known = {"ConfigMap": ["settings"]}
    env = [{"configMapRef": {"name": "setings"}}]
    waiting = {"reason": "CreateContainerConfigError", "message": 'configmap "setings" not found'}
    placed(cluster, a_job(1, container={"envFrom": env}), {"state": {"waiting": waiting}})
    return Expected("ConfigMapNotFound", YOU, {"name": "setings", "meant": "; did you mean settings?"}, runs=False)


@cause
def image_without_a_command(rng: Random, cluster: PlainCluster) -> Expected:
    message = "Container image 'app:1' has no command here: pods run this machine's programs"
    waiting = {"reason": "ErrImageNeverPull", "message": message}
    placed(cluster, a_job(1, container={"image": "app:1"}), {"state": {"waiting": waiting}})
    return Expected("ImageHasNoCommand", YOU, {"image": "app:1"}, change=False)


@cause
def image_that_cannot_be_pulled(rng: Random, cluster: PlainCluster) -> Expected:
    waiting = {"reason": "ImagePullBackOff", "message": "manifest unknown"}
    placed(cluster, a_job(1, container={"image": "app:9"}), {"state": {"waiting": waiting}})
    return Expected("ImageNotPulled", YOU, {"image": "app:9"}, change=False)


@cause
def exit_code(rng: Random, cluster: PlainCluster) -> Expected:
    code = rng.randint(1, 120)
    ended = {"exitCode": code, "reason": "Error"}
    job = a_job(1)
    placed(cluster, job, {"state": {"terminated": ended}}, "Failed")
    job["status"] = {"state": {"phase": "Failed"}}
    cluster.logs = {"default/demo-worker-0": "ValueError: no data"}
    because = f"exit code {code} (pod demo-worker-0); last line of its log: ValueError: no data"
    return Expected("Failed", FAILING, {"because": because}, change=False)


@cause
def crash_loop(rng: Random, cluster: PlainCluster) -> Expected:
    code, restarts = rng.randint(1, 120), rng.randint(2, 9)
    status = {
        "restartCount": restarts,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        "lastState": {"terminated": {"exitCode": code, "reason": "Error"}},
    }
    placed(cluster, a_job(1), status, "Running")
    cluster.logs = {"default/demo-worker-0": "ValueError: no data"}
    facts = {"code": code, "count": restarts, "last_line": "; last line of its log: ValueError: no data"}
    return Expected("ExitCode", FAILING, facts, change=False)


@cause
def out_of_memory(rng: Random, cluster: PlainCluster) -> Expected:
    resources = {"requests": {"cpu": "1"}, "limits": {"memory": "64Mi"}}
    status = {
        "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
    }
    placed(cluster, a_job(1, container={"resources": resources}), status, "Running")
    return Expected("OutOfMemory", FAILING, {"limit": " of 64Mi"}, runs=False)


@cause
def command_that_does_not_exist(rng: Random, cluster: PlainCluster) -> Expected:
    ended = {"exitCode": 128, "reason": "StartError", "message": 'exec: "trian": executable file not found in $PATH'}
    status = {
        "restartCount": 1,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": ended},
    }
    placed(cluster, a_job(1), status, "Running")
    return Expected("CommandNotFound", FAILING, {"container": "c"}, change=False)


# -- less common ------------------------------------------------------------------------------------------------------
WITH_CAPACITY = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: capacity, enableHierarchy: true}, {name: nodeorder}]
"""


def cleared(cluster: PlainCluster) -> None:
    for key in [key for key in cluster.objects if key[0] in ("Pod", "PodGroup")]:
        del cluster.objects[key]


@cause
def room_in_pieces(rng: Random, cluster: PlainCluster) -> Expected:
    """Enough is free in all, but not in pieces that are large enough for every pod."""
    cleared(cluster)
    size, nodes = cpus(cluster), nodes_of(cluster)
    for node in nodes:
        cluster.running(f"half-{node}", [node], {"cpu": str(size - 3)})
    pods = len(nodes) + 1
    submit(rng, cluster, a_job(pods, {"cpu": "2"}))
    return Expected("RoomForSome", TURN, {"most": len(nodes), "needed": pods})


@cause
def pods_of_others_forbid_it(rng: Random, cluster: PlainCluster) -> Expected:
    cleared(cluster)
    term = {"labelSelector": {"matchLabels": {"app": "demo"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    for node in nodes_of(cluster):
        cluster.running(f"shy-{node}", [node], {"cpu": "1"})
    for pod in cluster.every("Pod"):
        pod["spec"]["affinity"] = affinity
    submit(rng, cluster, a_job(1, {"cpu": "1"}))
    return Expected("NeighboursForbid", TURN, change=False)


@cause
def tier_without_room_now(rng: Random, cluster: PlainCluster) -> Expected:
    cleared(cluster)
    cluster.config_text = WITH_TOPOLOGY
    names, size = nodes_of(cluster)[:3], cpus(cluster)
    for number, name in enumerate(names):
        member = {"type": "Node", "selector": {"exactMatch": {"name": name}}}
        cluster.put("HyperNode", {"metadata": {"name": f"s{number}"}, "spec": {"tier": 1, "members": [member]}})
        cluster.running(f"busy-{number}", [name], {"cpu": str(size // 2)})
    members = [{"type": "HyperNode", "selector": {"exactMatch": {"name": f"s{n}"}}} for n in range(len(names))]
    cluster.put("HyperNode", {"metadata": {"name": "top"}, "spec": {"tier": 2, "members": members}})
    each = size // 4
    submit(rng, cluster, a_job(3, {"cpu": str(each)}, networkTopology={"mode": "hard", "highestTierAllowed": 1}))
    return Expected("TierFull", TURN, {"tier": 1, "needed": str(3 * each), "most": str(size - size // 2)})


@cause
def parent_queue_too_small(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.config_text = WITH_CAPACITY
    cluster.queue("root")
    cluster.queue("team", capability={"cpu": "2"}, parent="root")
    cluster.queue("leaf", parent="team")
    submit(rng, cluster, a_job(3, {"cpu": "1"}, queue="leaf"))
    return Expected("QueueTooSmall", YOU, {"queue": "team", "limit": "2", "needed": "3"})


@cause
def queue_with_queues_below_it(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.config_text = WITH_CAPACITY
    cluster.queue("root")
    cluster.queue("team", parent="root")
    cluster.queue("leaf", parent="team")
    submit(rng, cluster, a_job(1, {"cpu": "1"}, queue="team"))
    return Expected("QueueHasChildren", YOU, {"queue": "team", "names": "leaf"})


@cause
def no_node_has_both(rng: Random, cluster: PlainCluster) -> Expected:
    cleared(cluster)
    for node in nodes_of(cluster):
        cluster.get("Node", node)["status"]["allocatable"]["memory"] = "4Gi"
    cluster.node("wide", 1, 512)
    submit(rng, cluster, a_job(1, {"cpu": "4", "memory": "100Gi"}))
    return Expected("NoNodeHasAll", YOU)


@cause
def one_task_of_two_has_no_node(rng: Random, cluster: PlainCluster) -> Expected:
    job = a_job(1, {"cpu": "1"})
    second = {**job["spec"]["tasks"][0], "name": "second"}
    second["template"] = {"spec": {"containers": second["template"]["spec"]["containers"], "nodeSelector": {"x": "y"}}}
    job["spec"]["tasks"].append(second)
    job["spec"]["minAvailable"] = 2
    submit(rng, cluster, job)
    return Expected("NoNodeHasLabel", YOU, {"term": "x=y"})


@cause
def elastic_job_whose_other_task_has_no_node(rng: Random, cluster: PlainCluster) -> Expected:
    job = a_job(1, {"cpu": "1"}, least=1)
    second = {**job["spec"]["tasks"][0], "name": "second"}
    second["template"] = {"spec": {"containers": second["template"]["spec"]["containers"], "nodeSelector": {"x": "y"}}}
    job["spec"]["tasks"].append(second)
    job["status"] = {"state": {"phase": "Running"}}
    cluster.submit(job, phase="Running")
    for pod in cluster.every("Pod"):
        if pod["metadata"]["name"] == "demo-worker-0":
            pod["spec"]["nodeName"], pod["status"] = "node-0", {"phase": "Running"}
    return Expected("NoNodeHasLabel", YOU, {"term": "x=y"})


@cause
def init_container_that_fails(rng: Random, cluster: PlainCluster) -> Expected:
    placed(cluster, a_job(1), {"state": {"waiting": {"reason": "PodInitializing"}}})
    for pod in cluster.every("Pod"):
        if pod["metadata"]["name"].startswith("demo"):
            last = {"terminated": {"exitCode": 2, "reason": "Error"}}
            state = {"waiting": {"reason": "CrashLoopBackOff"}}
            pod["status"]["initContainerStatuses"] = [
                {"name": "prepare", "restartCount": 4, "state": state, "lastState": last}
            ]
    return Expected("InitContainerFails", FAILING, {"container": "prepare", "code": 2, "count": 4}, change=False)


@cause
def key_that_a_secret_does_not_have(rng: Random, cluster: PlainCluster) -> Expected:
    waiting = {"reason": "CreateContainerConfigError", "message": "couldn't find key token in Secret default/creds"}
    placed(cluster, a_job(1), {"state": {"waiting": waiting}})
    return Expected("KeyNotFound", YOU, {"key": "token", "kind": "Secret", "name": "creds"}, change=False)


@cause
def too_much_let_in_before(rng: Random, cluster: PlainCluster) -> Expected:
    """Another job waits for most of what may wait; this one fits, and may not enter yet."""
    cleared(cluster)
    total = len(nodes_of(cluster)) * cpus(cluster)
    cluster.running("holder", [nodes_of(cluster)[0]], {"cpu": "1"})
    cluster.submit(a_job(total, {"cpu": "1"}, name="giant"), phase="Inqueue")
    cluster.submit(too_large_to_enter(cluster, total - 1), phase="Pending", pods=False)
    return Expected("TooMuchLetIn", TURN, {"asked": str(total), "resource": "cpu"}, change=False, runs=False)


@cause
def job_let_in_before_that_can_never_run(rng: Random, cluster: PlainCluster) -> Expected:
    cleared(cluster)
    total = len(nodes_of(cluster)) * cpus(cluster)
    hold = a_job(total, {"cpu": "1"}, {"nodeSelector": {"pool": "nowhere"}}, name="giant")
    cluster.submit(hold, phase="Inqueue")
    cluster.submit(too_large_to_enter(cluster, total), phase="Pending", pods=False)
    facts = {"names": "giant", "asked": str(total), "resource": "cpu"}
    return Expected("LetInForEver", ADMIN, facts, of_others=True)


def too_large_to_enter(cluster: PlainCluster, total: int) -> dict[str, Any]:
    """A job that fits into the cluster, but not into the fifth of it that may wait beyond what the cluster has."""
    wanted = max(2, int(total * 0.2) + 1)
    if min(wanted + 1, cpus(cluster)) <= total * 0.2:
        return a_job(int(total * 0.2) // 2 + 1, {"cpu": "2"})
    return a_job(1, {"cpu": str(min(wanted + 1, cpus(cluster)))})


@cause
def claim_whose_volume_is_lost(rng: Random, cluster: PlainCluster) -> Expected:
    cluster.put("PersistentVolumeClaim", {
        "metadata": {"name": "data", "namespace": "default"}, "spec": {"volumeName": "pv-1"}, "status": {"phase": "Lost"},
    })  # fmt: skip
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    submit(rng, cluster, a_job(1, spec={"volumes": [volume]}))
    return Expected("ClaimLost", ADMIN, {"claim": "data", "volume": "pv-1"}, change=False)
