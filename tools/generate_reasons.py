"""Write docs/reference/reasons.md: every reason why something waits, fails or has ended, with its tier and an example.

python tools/generate_reasons.py           write the page
python tools/generate_reasons.py --check   fail if the page is not up to date
"""

from __future__ import annotations

import string
import sys
from pathlib import Path
from typing import Final

from generated_page import write_or_check

from volcano.api.why.reasons import GROUPS, MAX_TEXT_CHARACTERS, Reason, rendered
from volcano.api.why.tiers import Tier

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "reasons.md"
INTRO = f"""\
# Reasons

Generated from `volcano/api/why/reasons.py` by `tools/generate_reasons.py`.

`vcctl explain KIND/NAME`, `POST /explain` of the scheduler and the conditions of PodGroups give one reason out of this
closed list, with the names and numbers of the case. Events of PodGroups, pods and Jobs, `vcctl job list -o wide` and
`volcano run` show the same line (decision 48). A text is at most {MAX_TEXT_CHARACTERS} characters long, two lines
of a terminal.

Changes are offered in order of their cost to the person who asks. Volcano has no rules about who may use a queue; where
a cluster has some as admission policies or webhooks, a change that names a queue is offered only if a dry run of the
submission is accepted under that person's name.

The tier says who or what has to act:

| tier | waiting helps |
|---|---|
"""
MEANT: Final = "; did you mean {}?"
FACTS: Final[dict[str, str | int]] = {
    "reservation": "course",
    "start": "2026-11-20T14:00:00Z",
    "end": "2026-11-20T16:00:00Z",
    "estimate": "4h0m0s",
    "scheduler": "volcanoo", "message": "images need a digest", "quota": "rq", "used": "2", "hard": "2",
    "resource": "cpu", "needed": "12", "name": "creds", "namespace": "default", "gate": "example.com/quota-check",
    "pods": "gang-worker-0", "task": "worker", "after": "master", "before": 2, "exist": 2, "queue": "research",
    "state": "Closing", "names": "research-a, research-b", "limit": "10", "holder": "g", "guaranteed": "24",
    "left": "8", "held": "12", "share": "10", "holders": "; held by train-1, train-2 and 4 more", "ahead": 2,
    "asked": "30", "term": "pool=gpuu", "taint": "dedicated=infra:NoSchedule", "count": 3, "suitable": 3,
    "nodes": "node-1, node-2", "of_task": " of task worker", "most": "8", "request": "8 cpu, 32Gi memory", "suit": 3,
    "holds": 16, "key": "node", "port": "8080", "skew": 1, "tier": 1, "better": "; at tier 2 it fits",
    "node": "node-1", "pod": "gang-worker-0", "claim": "data", "volume": "pv-7", "class_name": "fastt", "total": "9",
    "running": 2, "waiting": 2, "because": "exit code 3 three times", "victims": "train-1",
    "kind": "Secret", "container": "main", "image": "app:1", "code": 3, "times": " three times",
    "last_line": "; last line of its log: ValueError: no data", "signal": 9, "probe": "readiness", "succeeded": 4,
    "retries": 3, "phase": "Terminating", "step": "train", "template": "trian", "time": "2026-01-02T03:00:00Z",
    "job": "nightly-1", "jobs": 2, "free": "3 cpu, 12Gi memory", "meant": "",
}  # fmt: skip
CASES: Final[dict[str, dict[str, str | int]]] = {
    "DeviceClassNotFound": {"class_name": "gpu.example.com"},
    "DevicesNeedConfirmation": {"most": 1, "needed": 2, "count": 4, "class_name": "gpu.example.com"},
    "NotEnoughDevices": {"most": 3, "needed": 4, "class_name": "gpu.example.com"},
    "DevicesInUse": {"most": 1, "needed": 4, "class_name": "gpu.example.com"},
    "UnknownScheduler": {"meant": MEANT.format("volcano")},
    "OtherScheduler": {"scheduler": "default-scheduler"},
    "QuotaTooSmall": {"resource": "pods", "needed": "3"},
    "QuotaUsed": {"resource": "requests.cpu", "used": "19", "hard": "20", "needed": "4"},
    "PriorityClassNotFound": {"name": "importnat", "meant": MEANT.format("important")},
    "ServiceAccountNotFound": {"name": "builder"},
    "OutsideLimitRange": {"message": "maximum cpu usage per Container is 2, but request is 4"},
    "GangNeedsLaterTask": {"needed": 3, "task": "second", "after": "worker"},
    "TooFewPods": {"needed": 3},
    "PodsBeingCreated": {"needed": 3},
    "QueueNotFound": {"queue": "reserach", "meant": MEANT.format("research")},
    "QueueBroken": {"message": "its parent nowhere does not exist"},
    "KeptByReservation": {"holder": "queue teaching"},
    "RoomReserved": {"message": "train-1 starts at 12:30"},
    "NotLetIn": {"message": "resource quota insufficient"},
    "PodGroupRefused": {"message": "podgroups is forbidden"},
    "OnlyRecorded": {"message": "2 of 3 tasks fit; 1 node: Insufficient cpu"},
    "Unreadable": {"message": "spec.minMember: expected int"},
    "NoNodeHasResource": {"resource": "nvidia.com/gpus", "meant": MEANT.format("nvidia.com/gpu")},
    "NoNodeHasLabel": {"meant": MEANT.format("pool=gpu")},
    "NoNodeHasLabels": {"term": "rack=r1, row=w2"},
    "NoNodeInAffinity": {"term": "disk In tape"},
    "AffinityContradicts": {"term": "metadata.name In a and metadata.name In b"},
    "TooFewNodes": {"needed": 5},
    "GangTooLarge": {"needed": 20, "request": "1 cpu"},
    "AntiAffinityLimit": {"most": 3, "needed": 5},
    "HostPortLimit": {"most": 3, "needed": 4},
    "SpreadLimit": {"most": 3, "needed": 4, "key": "topology.kubernetes.io/zone"},
    "SpreadKeyMissing": {"key": "example.org/rack"},
    "NoPodNear": {"term": "app=database in the same kubernetes.io/hostname"},
    "AffinityLimit": {"most": 8, "needed": 10},
    "PodNumberLimit": {"most": 330, "needed": 400},
    "TierTooSmall": {"needed": "18", "most": "16"},
    "HyperNodesContradict": {"message": "s1 and s2 both have node-1"},
    "NodeNotFound": {"node": "node-99", "meant": MEANT.format("node-9")},
    "StorageClassNotFound": {"meant": MEANT.format("fast")},
    "ResourceClaimNotFound": {"claim": "gpu-claim"},
    "NodesRefuse": {"message": "node isn't in scheduler node shard"},
    "NoRoomOnOneNode": {"needed": "4", "most": "3"},
    "NotEnoughRoom": {"pods": 12},
    "RoomForSome": {"most": 3, "needed": 4},
    "SomeRun": {"pods": 4, "because": "needs 2 cpu for 2 pods; 0 are free"},
    "NeighboursForbid": {"pods": "web-1, web-2"},
    "SpreadForbids": {"key": "topology.kubernetes.io/zone"},
    "TierFull": {"needed": "12", "most": "9"},
    "RefusedNow": {"message": "node(s) exceed max volume count"},
    "BindFailed": {"message": "the node was deleted"},
    "ContainerNotConfigured": {"message": "container has runAsNonRoot and image will run as root"},
    "ImageNotPulled": {"message": "manifest unknown"},
    "ImageNameInvalid": {"image": "app:1:2"},
    "VolumeNotMounted": {"message": "MountVolume.SetUp failed for volume v"},
    "CommandNotFound": {"message": 'exec: "trian": executable file not found in $PATH'},
    "OutOfMemory": {"limit": " of 64Mi"},
    "ConfigMapNotFound": {"name": "setings", "meant": MEANT.format("settings")},
    "KilledBySignal": {"last_line": ""},
    "InitContainerFails": {"container": "prepare", "times": "", "last_line": ""},
    "ProbeFails": {"message": "HTTP probe failed with statuscode: 500"},
    "PodEvicted": {"message": "The node was low on resource: memory"},
    "PodFailed": {"message": "the node was shut down"},
    "RunsAsWanted": {"running": 4, "pods": 4},
    "Completed": {"pods": 4},
    "Terminated": {"because": "retry limit reached: create Pod gang-worker-0"},
    "Restarting": {"retries": 1, "most": 3},
    "Ending": {"pods": 3},
    "FlowWaitsForStep": {"after": "prepare", "state": "Running"},
    "FlowTemplateNotFound": {"step": "trian", "meant": MEANT.format("train")},
    "FlowStepFailed": {"step": "prepare", "waiting": "train"},
    "CronBadSchedule": {"message": "unparseable schedule '0 25 * * *': 25 is above 23"},
    "QueueIdle": {"held": "12 cpu"},
    "QueueWaitsFor": {"job": "train-3", "because": "queue research holds 12 of at most 12 cpu"},
    "NodeNotReady": {"message": "node.kubernetes.io/not-ready:NoSchedule"},
    "NodeFull": {"free": "room for a pod", "holders": "train-1, train-2"},
    "NodeUnwanted": {"because": "their conditions exclude it"},
    "NodeUnknown": {"node": "node-99", "meant": MEANT.format("node-9")},
}


def example(reason: Reason) -> str:
    fields = {name for _, name, _, _ in string.Formatter().parse(reason.text) if name}
    case = CASES.get(reason.name, {})
    return rendered(reason.name, {name: case.get(name, FACTS[name]) for name in sorted(fields)})


def page() -> str:
    lines = [INTRO + "\n".join(f"| {tier} | {'yes' if tier.waiting_helps else 'no'} |" for tier in Tier), ""]
    for group in GROUPS:
        lines += [f"## {group.title}", "", "| reason | tier | example |", "|---|---|---|"]
        lines += [f"| {reason.name} | {reason.tier} | {example(reason)} |" for reason in group.reasons]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
