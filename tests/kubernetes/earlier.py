"""An earlier Volcano installation: its objects, with every field the API reference names, and its definitions.

Definitions are those of a release, fetched by Go, or open ones that keep whatever is written: the hardest to take over
from, since anything our own definitions do not know would vanish.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import Any

import yaml

from .control_plane import tool

RELEASE = "v1.15.1"
MODULE = "volcano.sh/volcano"
TIME, LATER = "2026-01-02T03:04:05Z", "2026-01-02T04:05:06Z"
JSONObject = dict[str, Any]

TOPOLOGY = {"mode": "hard", "highestTierAllowed": 2}
SELECTOR = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["d", "e"]}]}
CONDITION = {
    "type": "Ready",
    "status": "True",
    "reason": "AllGood",
    "message": "m",
    "lastTransitionTime": TIME,
    "observedGeneration": 1,
}
TEMPLATE = {
    "metadata": {"name": "n", "namespace": "s", "labels": {"app": "x"}, "annotations": {"note": "y"}, "finalizers": ["example.org/f"]},
    "spec": {
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "any", "command": ["run"], "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
        "tolerations": [{"key": "k", "operator": "Exists", "tolerationSeconds": 5}],
        "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": ["n1"]}]}}]}},
    },
}  # fmt: skip
POLICIES = [
    {"event": "PodPending", "action": "RestartJob", "timeout": "1h0m0s"},
    {"events": ["PodFailed", "PodEvicted"], "action": "RestartTask"},
    {"exitCode": 3, "action": "AbortJob"},
]
JOB_SPEC = {
    "schedulerName": "volcano", "minAvailable": 4, "queue": "research", "maxRetry": 5, "ttlSecondsAfterFinished": 2_000_000_000,
    "priorityClassName": "urgent", "minSuccess": 2, "runningEstimate": "1h2m3s", "networkTopology": {"mode": "soft", "highestTierName": "rack"},
    "plugins": {"env": [], "svc": ["--publish-not-ready-addresses=true"], "ssh": []},
    "policies": POLICIES,
    "volumes": [
        {"mountPath": "/data", "volumeClaimName": "claimed"},
        {"mountPath": "/scratch", "volumeClaim": {"accessModes": ["ReadWriteOnce"], "storageClassName": "fast", "resources": {"requests": {"storage": "1Gi"}}}},
    ],
    "tasks": [
        {
            "name": "worker", "replicas": 4, "minAvailable": 2, "maxRetry": 2, "topologyPolicy": "best-effort", "policies": POLICIES[2:],
            "partitionPolicy": {"totalPartitions": 2, "partitionSize": 2, "minPartitions": 1, "networkTopology": TOPOLOGY},
            "template": TEMPLATE,
        },
        {"name": "master", "replicas": 1, "minAvailable": 1, "maxRetry": 3, "dependsOn": {"name": ["worker"], "iteration": "any"}, "template": TEMPLATE},
    ],
}  # fmt: skip
JOB_STATUS = {
    "state": {"phase": "Completed", "reason": "r", "message": "m", "lastTransitionTime": LATER},
    "minAvailable": 4, "pending": 1, "running": 2, "succeeded": 3, "failed": 4, "terminating": 5, "unknown": 6, "version": 7, "retryCount": 8,
    "taskStatusCount": {"worker": {"phase": {"Succeeded": 4}}, "master": {"phase": {"Succeeded": 1}}}, "runningDuration": "1h1m1s",
    "controlledResources": {"plugin-env": "env", "plugin-svc": "svc", "volume-pvc-claimed": "claimed"},
    "conditions": [{"status": "Pending", "lastTransitionTime": TIME}, {"status": "Completed", "lastTransitionTime": LATER}],
}  # fmt: skip
QUEUE_SPEC = {
    "weight": 4, "capability": {"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": 8}, "reclaimable": False, "parent": "root", "priority": 3,
    "extendClusters": [{"name": "silo", "weight": 2, "capacity": {"cpu": "8"}}], "guarantee": {"resource": {"cpu": "2"}},
    "deserved": {"cpu": "32", "memory": "128Gi"}, "type": "kind-of", "dequeueStrategy": "fifo",
    "affinity": {
        kind: {f"{how}DuringSchedulingIgnoredDuringExecution": [f"group-{how}"] for how in ("required", "preferred")}
        for kind in ("nodeGroupAffinity", "nodeGroupAntiAffinity")
    },
}  # fmt: skip
QUEUE_STATUS = {
    "state": "Open", "unknown": 1, "pending": 2, "running": 3, "inqueue": 4, "completed": 5, "allocated": {"cpu": "3", "pods": "3"},
    "reservation": {"nodes": ["n1"], "resource": {"cpu": "1"}},
}  # fmt: skip
GROUP = {
    "spec": {
        "minMember": 3, "minTaskMember": {"worker": 2}, "queue": "research", "priorityClassName": "urgent",
        "minResources": {"cpu": "3", "memory": "3Gi"}, "networkTopology": TOPOLOGY,
        "subGroupPolicy": [{"name": "worker", "subGroupSize": 2, "minSubGroups": 1, "labelSelector": SELECTOR, "matchLabelKeys": ["volcano.sh/partition-id"],
                            "networkTopology": {"mode": "soft", "highestTierAllowed": 1}}],
    },
    "status": {
        "phase": "Running", "running": 3, "succeeded": 2, "failed": 1,
        "conditions": [{"type": "Scheduled", "status": "True", "transitionID": "id", "lastTransitionTime": TIME, "reason": "tasks in gang are ready to be scheduled", "message": "m"}],
    },
}  # fmt: skip
FLOW = {
    "spec": {
        "jobRetainPolicy": "retain",
        "flows": [
            {"name": "first"},
            {
                "name": "second",
                "dependsOn": {
                    "targets": ["first"],
                    "probe": {
                        "httpGetList": [{"taskName": "t", "path": "/p", "port": 80, "httpHeader": {"name": "h", "value": "v"}}],
                        "tcpSocketList": [{"taskName": "t", "port": 81}],
                        "taskStatusList": [{"taskName": "t", "phase": "Running"}],
                    },
                },
                "patch": {"jobSpec": {"queue": "research", "maxRetry": 2}},
            },
        ],
    },
    "status": {
        **{f"{name}Jobs": [f"whole-{name}"] for name in ("pending", "running", "failed", "completed", "terminated", "unKnow")},
        "jobStatusList": [{
            "name": "whole-first", "state": "Completed", "startTimestamp": TIME, "endTimestamp": LATER, "restartCount": 1,
            "runningHistories": [{"startTimestamp": TIME, "endTimestamp": LATER, "state": "Running"}],
        }],
        "conditions": {"whole-first": {"phase": "Completed", "createTime": TIME, "runningDuration": "1m", "taskStatusCount": {"t": {"phase": {"Succeeded": 1}}}}},
        "state": {"phase": "Succeed"},
    },
}  # fmt: skip
ALLOCATION = {
    "uid": "u",
    "name": "p",
    "namespace": "s",
    "containerAllocations": [{"name": "c", "allocations": {"cpu": "0-1"}}],
}


def _body(api_version: str, kind: str, name: str, **content: Any) -> JSONObject:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **content}


def whole_objects() -> list[JSONObject]:
    """One or more of each kind, finished or at rest, with every field."""
    batch, scheduling, topology = (
        "batch.volcano.sh/v1alpha1",
        "scheduling.volcano.sh/v1beta1",
        "topology.volcano.sh/v1alpha1",
    )
    cron = {
        "schedule": "0 3 * * *", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 60, "concurrencyPolicy": "Forbid", "suspend": True,
        "jobTemplate": {"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}, "spec": JOB_SPEC},
        "successfulJobsHistoryLimit": 4, "failedJobsHistoryLimit": 2,
    }  # fmt: skip
    active = [
        {
            "apiVersion": batch,
            "kind": "Job",
            "name": "nightly-1",
            "namespace": "default",
            "uid": "u",
            "resourceVersion": "1",
        }
    ]
    members = [
        {"type": "Node", "selector": {"exactMatch": {"name": "n1"}}},
        {"type": "Node", "selector": {"regexMatch": {"pattern": "^n[0-9]+$"}}},
        {"type": "Node", "selector": {"labelMatch": SELECTOR}},
    ]
    numa = {
        "policies": {"CPUManagerPolicy": "static"}, "resReserved": {"cpu": "500m"}, "numares": {"cpu": {"allocatable": "0-3", "capacity": 4}},
        "cpuDetail": {"0": {"numa": 1, "socket": 2, "core": 3}}, "podAllocations": [ALLOCATION],
    }  # fmt: skip
    return [
        _body(scheduling, "Queue", "root", spec={"weight": 1, "reclaimable": False}, status={"state": "Open"}),
        _body(scheduling, "Queue", "default", spec={"weight": 1, "parent": "root"}, status={"state": "Open"}),
        _body(scheduling, "Queue", "research", spec=QUEUE_SPEC, status=QUEUE_STATUS),
        _body(scheduling, "Queue", "research-team", spec={"weight": 2, "parent": "research", "capability": {"cpu": "16"}}, status={"state": "Closed"}),
        _body(batch, "Job", "whole", spec=JOB_SPEC, status=JOB_STATUS),
        _body(batch, "CronJob", "nightly", spec=cron, status={"active": active, "lastScheduleTime": TIME, "lastSuccessfulTime": LATER}),
        _body(scheduling, "PodGroup", "whole", **GROUP),
        _body("flow.volcano.sh/v1alpha1", "JobTemplate", "first", spec=JOB_SPEC, status={"jobDependsOnList": ["whole-first"]}),
        _body("flow.volcano.sh/v1alpha1", "JobFlow", "whole", **FLOW),
        _body(topology, "HyperNode", "rack", spec={"tier": 1, "tierName": "rack", "members": members}, status={"nodeCount": 1, "conditions": [CONDITION]}),
        _body("nodeinfo.volcano.sh/v1alpha1", "Numatopology", "n1", spec=numa),
        _body(
            "shard.volcano.sh/v1alpha1", "NodeShard", "volcano", spec={"nodesDesired": ["n1"]},
            status={"lastUpdateTime": TIME, "nodesInUse": ["n1"], "nodesToRemove": ["n2"], "nodesToAdd": ["n3"]},
        ),
        _body(
            "config.volcano.sh/v1alpha1", "ColocationConfiguration", "colocated",
            spec={"selector": SELECTOR, "memoryQos": {"highRatio": 90, "lowRatio": 10, "minRatio": 5}}, status={"conditions": [CONDITION]},
        ),
    ]  # fmt: skip


def a_command() -> JSONObject:
    """Apart from the others, since controllers consume it."""
    target = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "whole",
        "uid": "u",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return _body(
        "bus.volcano.sh/v1alpha1",
        "Command",
        "order",
        action="AbortJob",
        target=target,
        reason="Because",
        message="it said",
    )


# -- definitions --------------------------------------------------------------------------------------------------
CATALOGUE = (
    # group, version, kind, plural, short names, namespaced, has a status subresource
    ("batch.volcano.sh", "v1alpha1", "Job", "jobs", "vcjob vj", True, True),
    ("batch.volcano.sh", "v1alpha1", "CronJob", "cronjobs", "cronvcjob cronvj", True, True),
    ("bus.volcano.sh", "v1alpha1", "Command", "commands", "", True, False),
    ("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", "pg podgroup-v1beta1", True, False),
    ("scheduling.volcano.sh", "v1beta1", "Queue", "queues", "q queue-v1beta1", False, True),
    ("flow.volcano.sh", "v1alpha1", "JobTemplate", "jobtemplates", "jt", True, True),
    ("flow.volcano.sh", "v1alpha1", "JobFlow", "jobflows", "jf", True, True),
    ("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes", "hn", False, True),
    ("nodeinfo.volcano.sh", "v1alpha1", "Numatopology", "numatopologies", "numatopo", False, False),
    ("shard.volcano.sh", "v1alpha1", "NodeShard", "nodeshards", "nsh", False, True),
    ("config.volcano.sh", "v1alpha1", "ColocationConfiguration", "colocationconfigurations", "", True, True),
)


def open_definitions() -> list[JSONObject]:
    """Volcano's kinds by their names, scopes and subresources, with schemas that let everything pass."""
    found = []
    for group, version, kind, plural, short, namespaced, has_status in CATALOGUE:
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        served: JSONObject = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
        if has_status:
            served["subresources"] = {"status": {}}
        names = {
            "kind": kind,
            "listKind": f"{kind}List",
            "plural": plural,
            "singular": kind.lower(),
            "shortNames": short.split(),
        }
        spec = {
            "group": group,
            "names": names,
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [served],
        }
        found.append(_body("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.{group}", spec=spec))
    return found


class Unavailable(Exception):
    """A release cannot be had here; the message says why."""


def released_definitions(version: str = RELEASE) -> list[JSONObject]:
    """The definitions in a release of Volcano's Go module, which is left in Go's own cache; raises Unavailable."""
    toolchain = tool("toolchain")
    try:
        go = toolchain.find_go(fetch=False)
    except toolchain.NoGo as error:
        raise Unavailable(str(error)) from None
    with tempfile.TemporaryDirectory() as scratch:
        environment = {**os.environ, "GOFLAGS": "-mod=mod", "GOWORK": "off"}
        try:
            done = subprocess.run(
                [str(go), "mod", "download", "-json", f"{MODULE}@{version}"],
                cwd=scratch, env=environment, capture_output=True, text=True, timeout=60,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{MODULE}@{version} was not fetched within a minute") from None
    if done.returncode != 0:
        said = json.loads(done.stdout)["Error"] if done.stdout.startswith("{") else done.stderr
        raise Unavailable(f"Go cannot fetch Volcano's release: {' '.join(said.split())}")
    return definitions_in(Path(json.loads(done.stdout)["Zip"]))


def definitions_in(archive: Path) -> list[JSONObject]:
    """Every definition in the YAML files of an archive; of two of one name that which is less deep, then first."""
    found: dict[str, tuple[int, JSONObject]] = {}
    with zipfile.ZipFile(archive) as files:
        for name in sorted(files.namelist()):
            content = files.read(name) if name.endswith((".yaml", ".yml")) else b""
            if b"apiextensions.k8s.io/v1\n" not in content or b"kind: CustomResourceDefinition" not in content:
                continue
            try:
                bodies = list(yaml.load_all(content, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)))
            except yaml.YAMLError:
                continue  # a template, whose plain form is beside it
            depth = len(PurePosixPath(name).parts)
            for body in bodies:
                if isinstance(body, dict) and body.get("kind") == "CustomResourceDefinition":
                    title = body["metadata"]["name"]
                    if title not in found or depth < found[title][0]:
                        found[title] = (depth, body)
    return [body for _, body in found.values() if body["spec"]["group"].endswith(".volcano.sh")]
