"""Reason: every reason there is, with its tier and text; and Finding, a reason with the names and numbers of a case.

docs/reference/reasons.md is generated from this table by tools/generate_reasons.py. A text is at most two lines of
100 columns: names in it are shortened, lists are cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from volcano.api.why.tiers import Tier

MAX_TEXT_CHARACTERS: Final = 200
MAX_FACT_CHARACTERS: Final = 80
MAX_NAMES: Final = 3


@dataclass(frozen=True, slots=True)
class Reason:
    """`text` has a field for each fact; a fact that a case does not have is left out with the blank before it."""

    name: str
    tier: Tier
    text: str


@dataclass(frozen=True, slots=True)
class ReasonGroup:
    """Reasons that belong together in the documentation."""

    title: str
    reasons: tuple[Reason, ...]


YOU, ADMIN, EVENT = Tier.YOU, Tier.ADMINISTRATOR, Tier.EVENT
TURN, STARTING, FAILING, NOTHING = Tier.TURN, Tier.STARTING, Tier.FAILING, Tier.NOTHING

GROUPS: Final = (
    ReasonGroup(
        "Before anything is scheduled",
        (
            Reason("Suspended", YOU, "it is suspended and starts again when it is resumed"),
            Reason("UnknownScheduler", YOU, "there is no scheduler {scheduler} here{meant}"),
            Reason("OtherScheduler", EVENT, "its pods are placed by {scheduler}, not by Volcano"),
            Reason("PodsRefused", YOU, "the API server refuses its pods: {message}"),
            Reason(
                "QuotaTooSmall",
                YOU,
                "quota {quota}: {used} of {hard} {resource} used, {needed} needed; it never allows so much",
            ),
            Reason("QuotaUsed", TURN, "quota {quota}: {used} of {hard} {resource} used, {needed} needed"),
            Reason("PriorityClassNotFound", YOU, "there is no PriorityClass {name}{meant}"),
            Reason("ServiceAccountNotFound", YOU, "there is no ServiceAccount {name} in namespace {namespace}{meant}"),
            Reason("OutsideLimitRange", YOU, "the limits of namespace {namespace} refuse its pods: {message}"),
            Reason("NamespaceEnding", YOU, "namespace {namespace} is being deleted"),
            Reason("SchedulingGate", EVENT, "waits for the scheduling gate {gate} to be removed ({pods})"),
            Reason("TaskDependsOn", EVENT, "task {task} starts after task {after}"),
            Reason(
                "GangNeedsLaterTask",
                YOU,
                "minAvailable {needed} needs task {task}, which starts only after {after}; {before} pods "
                "come before it",
            ),
            Reason("TooFewPods", YOU, "needs {needed} pods to start, {exist} exist"),
            Reason("PodsBeingCreated", STARTING, "{exist} of its {needed} pods exist, the others are being created"),
            Reason("NotSeenYet", STARTING, "the scheduler has not seen it yet"),
            Reason("PodGroupRefused", YOU, "its PodGroup cannot be made: {message}"),
            Reason("OnlyRecorded", EVENT, "the scheduler cannot be asked; it wrote last: {message}"),
            Reason("Unreadable", YOU, "the scheduler cannot read it: {message}"),
        ),
    ),
    ReasonGroup(
        "Queues",
        (
            Reason("QueueNotFound", YOU, "there is no queue {queue}{meant}"),
            Reason("QueueClosed", ADMIN, "queue {queue} is {state} and takes no jobs until it is opened"),
            Reason(
                "QueueHasChildren",
                YOU,
                "queue {queue} has queues below it and holds no jobs itself; below it: {names}",
            ),
            Reason("QueueBroken", ADMIN, "queue {queue} cannot hold jobs: {message}"),
            Reason(
                "QueueTooSmall",
                YOU,
                "queue {queue} may have at most {limit} {resource}; the job needs {needed}",
            ),
            Reason(
                "OthersGuaranteed",
                YOU,
                "queue {holder} is guaranteed {guaranteed} {resource}, which leaves {left}; the job needs {needed}",
            ),
            Reason(
                "QueueFull",
                TURN,
                "queue {queue} holds {held} of at most {limit} {resource}; the job needs {needed}{holders}",
            ),
            Reason(
                "QueueAboveShare",
                TURN,
                "queue {queue} holds {held} {resource} of its share of {share}; the job needs {needed}{holders}",
            ),
            Reason("BehindOthers", TURN, "{ahead} jobs come first in queue {queue}: {names}"),
            Reason(
                "KeptByReservation",
                EVENT,
                "reservation {reservation} keeps the room for {holder} from {start} to {end}; the job runs {estimate}",
            ),
            Reason("RoomReserved", TURN, "it would delay a job that comes first: {message}"),
            Reason(
                "TooMuchLetIn",
                TURN,
                "jobs let in before it hold or wait for {asked} of the {limit} {resource} that may be let in; the job "
                "needs {needed}",
            ),
            Reason(
                "LetInForEver",
                ADMIN,
                "{names} can never run, but entered first: {asked} {resource} of the {limit} that may wait are taken",
            ),
            Reason("NotLetIn", TURN, "it may not enter queue {queue} yet: {message}"),
        ),
    ),
    ReasonGroup(
        "Nodes that would do, if all of them were free",
        (
            Reason("NoNodes", ADMIN, "the cluster has no nodes"),
            Reason("NoNodeHasResource", YOU, "no node has {resource}{meant}"),
            Reason("NoNodeHasLabel", YOU, "no node has {term}{meant}"),
            Reason("NoNodeHasLabels", YOU, "no node has all of {term}"),
            Reason("NoNodeInAffinity", YOU, "no node matches the required node affinity: {term}{meant}"),
            Reason("AffinityContradicts", YOU, "the required node affinity names several nodes at once: {term}"),
            Reason(
                "TaintNotTolerated",
                YOU,
                "{count} of {suitable} suitable nodes have the taint {taint}, not tolerated",
            ),
            Reason("NodesCordoned", ADMIN, "{count} of {suitable} suitable nodes are cordoned: {nodes}"),
            Reason("NodesNotReady", ADMIN, "{count} of {suitable} suitable nodes are not ready: {nodes}"),
            Reason(
                "PodTooLarge",
                YOU,
                "a pod{of_task} needs {needed} {resource}; the largest of {suitable} suitable nodes has {most}",
            ),
            Reason("NoNodeHasAll", YOU, "no node has {request} together, though each alone is there"),
            Reason("TooFewNodes", YOU, "needs {needed} nodes with {request}, {suit} suit"),
            Reason(
                "GangTooLarge",
                YOU,
                "needs {needed} pods with {request} at once; all suitable nodes together hold {holds}",
            ),
            Reason(
                "AntiAffinityLimit",
                YOU,
                "at most {most} at a time: no two may share a {key}; {needed} are needed",
            ),
            Reason(
                "HostPortLimit",
                YOU,
                "at most {most} at a time: each takes host port {port} of a node; {needed} are needed",
            ),
            Reason("SpreadLimit", YOU, "at most {most} at a time by maxSkew {skew} over {key}; {needed} are needed"),
            Reason("SpreadKeyMissing", YOU, "no suitable node has the label {key} of the spread constraint{meant}"),
            Reason("NoPodNear", YOU, "no pod matches the required pod affinity {term}"),
            Reason(
                "AffinityLimit",
                YOU,
                "at most {most} at a time fit in one {key}, as the pod affinity asks; {needed} are needed",
            ),
            Reason("PodNumberLimit", YOU, "all suitable nodes together may hold {most} pods; {needed} are needed"),
            Reason(
                "TierTooSmall",
                YOU,
                "no HyperNode of tier {tier} holds it: it needs {needed} {resource}, the largest has {most}{better}",
            ),
            Reason("NoHyperNode", YOU, "there is no HyperNode of tier {tier} or below{better}"),
            Reason("HyperNodesContradict", ADMIN, "the HyperNodes contradict each other: {message}"),
            Reason("NodeNotFound", YOU, "node {node}, which pod {pod} names, does not exist{meant}"),
            Reason("ClaimNotFound", YOU, "there is no PersistentVolumeClaim {claim}{meant}"),
            Reason("ClaimEnding", YOU, "PersistentVolumeClaim {claim} is being deleted"),
            Reason("ClaimLost", ADMIN, "PersistentVolumeClaim {claim} has lost its volume {volume}"),
            Reason(
                "ClaimUnbound",
                ADMIN,
                "PersistentVolumeClaim {claim} is not bound: no volume of class {class_name} suits it",
            ),
            Reason(
                "StorageClassNotFound",
                YOU,
                "PersistentVolumeClaim {claim} names StorageClass {class_name}, which does not exist{meant}",
            ),
            Reason("VolumeElsewhere", YOU, "the volume of claim {claim} can be reached from no suitable node"),
            Reason("ResourceClaimNotFound", YOU, "there is no ResourceClaim {claim}{meant}"),
            Reason("DeviceClassNotFound", YOU, "its claim names DeviceClass {class_name}, which does not exist"),
            Reason(
                "NotEnoughDevices",
                YOU,
                "{most} of the {needed} devices of class {class_name} that it needs together exist",
            ),
            Reason(
                "DevicesNeedConfirmation",
                YOU,
                "{most} of the {needed} devices of class {class_name} that it needs together can be used; {count} more "
                "would have to be confirmed by their driver before a pod is bound (bindingConditions)",
            ),
            Reason("NodesRefuse", YOU, "{count} of {suitable} suitable nodes refuse it: {message}"),
        ),
    ),
    ReasonGroup(
        "Room at this moment",
        (
            Reason(
                "NoRoomOnOneNode",
                TURN,
                "a pod{of_task} needs {needed} {resource}; the most free on one node is {most}, {total} in "
                "all{holders}",
            ),
            Reason("NotEnoughRoom", TURN, "needs {needed} {resource} for {pods} pods; {total} are free{holders}"),
            Reason("RoomForSome", TURN, "there is room for {most} of the {needed} pods it needs together{holders}"),
            Reason("SomeRun", TURN, "{running} of its {pods} pods run, {waiting} run after them: {because}"),
            Reason(
                "DevicesInUse",
                TURN,
                "{most} of the {needed} devices of class {class_name} that it needs together are free",
            ),
            Reason("HostPortsInUse", TURN, "host port {port} is in use on all suitable nodes{holders}"),
            Reason("NeighboursForbid", TURN, "the anti-affinity of {pods} keeps it off all nodes with room"),
            Reason("SpreadForbids", TURN, "maxSkew {skew} over {key} allows no node with room as pods are now"),
            Reason("PodNumberReached", TURN, "all suitable nodes have as many pods as they may{holders}"),
            Reason(
                "TierFull",
                TURN,
                "no HyperNode of tier {tier} has room: it needs {needed} {resource}, the most free is {most}",
            ),
            Reason("RefusedNow", TURN, "no node takes it as pods are now: {message}"),
            Reason(
                "VictimNotPreemptable",
                TURN,
                "would need the room of {victims}, which may not be taken because it is not preemptable",
            ),
            Reason(
                "NoPreemptAction",
                TURN,
                "would need the room of {victims}, which may not be taken because the scheduler has no action preempt",
            ),
            Reason(
                "NoReclaimAction",
                TURN,
                "would need the room of {victims}, which may not be taken because the scheduler has no action reclaim",
            ),
            Reason(
                "NeverPreempts",
                TURN,
                "would need the room of {victims}, which may not be taken because its preemptionPolicy is Never",
            ),
            Reason(
                "QueueNotReclaimable",
                TURN,
                "would need the room of {victims}, which may not be taken because queue {queue} is not reclaimable",
            ),
            Reason("RoomPromised", EVENT, "room on {nodes} is promised to it; it waits until {pods} have ended"),
            Reason("WillPreempt", STARTING, "the scheduler makes room for it by evicting {victims}"),
            Reason("BindFailed", STARTING, "its node was chosen, binding failed and is tried again: {message}"),
            Reason("BeingPlaced", STARTING, "it fits and is being placed"),
        ),
    ),
    ReasonGroup(
        "After placement",
        (
            Reason("ContainersStarting", STARTING, "its containers are starting on {node}"),
            Reason("SecretNotFound", YOU, 'Secret "{name}" not found (pod {pod} on node {node}){meant}'),
            Reason("ConfigMapNotFound", YOU, 'ConfigMap "{name}" not found (pod {pod} on node {node}){meant}'),
            Reason("KeyNotFound", YOU, "there is no key {key} in {kind} {name} (pod {pod} on node {node})"),
            Reason(
                "ContainerNotConfigured",
                YOU,
                "container {container} cannot be set up: {message} (pod {pod} on node {node})",
            ),
            Reason(
                "ImageHasNoCommand",
                YOU,
                "image {image} has no command here; give container {container} a command (pod {pod})",
            ),
            Reason("ImageNotPulled", YOU, "image {image} cannot be pulled: {message} (pod {pod} on node {node})"),
            Reason("ImageNameInvalid", YOU, "{image} is no valid name of an image (pod {pod})"),
            Reason("VolumeNotMounted", YOU, "a volume cannot be mounted: {message} (pod {pod} on node {node})"),
            Reason(
                "CommandNotFound",
                FAILING,
                "the command of container {container} cannot be started: {message} (pod {pod})",
            ),
            Reason(
                "OutOfMemory",
                FAILING,
                "container {container} used more memory than its limit{limit} and was killed{times} (pod {pod})",
            ),
            Reason("ExitCode", FAILING, "exit code {code}{times} (pod {pod}){last_line}"),
            Reason(
                "InitContainerFails",
                FAILING,
                "init container {container}: exit code {code}{times} (pod {pod}){last_line}",
            ),
            Reason(
                "KilledBySignal",
                FAILING,
                "container {container} was ended by signal {signal}{times} (pod {pod}){last_line}",
            ),
            Reason(
                "ProbeFails",
                FAILING,
                "container {container} runs but its {probe} probe fails: {message} (pod {pod})",
            ),
            Reason(
                "NotReadyYet",
                STARTING,
                "container {container} runs but is not ready yet (pod {pod} on node {node})",
            ),
            Reason("NodeSilent", ADMIN, "node {node} does not answer; pod {pod} waits for it"),
            Reason("DeadlineExceeded", FAILING, "it was active longer than its deadline allows (pod {pod})"),
            Reason("PodEvicted", FAILING, "pod {pod} was evicted from {node}: {message}"),
            Reason("PodEnding", EVENT, "pod {pod} is being ended on node {node}"),
            Reason("PodFailed", FAILING, "pod {pod} failed: {message}"),
            Reason("RunsAsWanted", NOTHING, "{running} of its {pods} pods run"),
        ),
    ),
    ReasonGroup(
        "After the end",
        (
            Reason("Completed", NOTHING, "it completed: {succeeded} of {pods} pods succeeded"),
            Reason("FailedAfterRetries", FAILING, "it failed after {retries} restarts: {because}"),
            Reason("Failed", FAILING, "it failed: {because}"),
            Reason("Terminated", NOTHING, "it was terminated: {because}"),
            Reason("Restarting", STARTING, "it is restarting ({retries} of {most}): {because}"),
            Reason("Ending", EVENT, "it is {phase}: {pods} pods are being ended"),
        ),
    ),
    ReasonGroup(
        "Flows, cron jobs and workloads",
        (
            Reason("FlowWaitsForStep", EVENT, "step {step} starts after {after}, which is {state}"),
            Reason("FlowTemplateNotFound", YOU, "step {step}: there is no JobTemplate {template}{meant}"),
            Reason("FlowStepFailed", FAILING, "step {step} failed, so {waiting} does not start"),
            Reason("CronSuspended", YOU, "it is suspended: no run starts until it is resumed"),
            Reason("CronNextRun", EVENT, "the next run is at {time}"),
            Reason("CronForbidden", EVENT, "run {job} has not ended and concurrencyPolicy is Forbid"),
            Reason("CronBadSchedule", YOU, "its schedule cannot be read: {message}"),
            Reason("NoReplicas", YOU, "it asks for 0 replicas"),
            Reason("Paused", YOU, "it is paused: no new pods are made until it is resumed"),
        ),
    ),
    ReasonGroup(
        "Queues and nodes asked about themselves",
        (
            Reason("QueueIdle", NOTHING, "nothing waits in queue {queue}; it holds {held}"),
            Reason("QueueWaitsFor", TURN, "{jobs} jobs wait in queue {queue}; the first is {job}: {because}"),
            Reason("NodeTakesPods", NOTHING, "node {node} takes pods: {free} free"),
            Reason("NodeCordoned", ADMIN, "node {node} is cordoned: no pod is placed on it"),
            Reason("NodeNotReady", ADMIN, "node {node} is not ready: {message}"),
            Reason(
                "NodeTainted",
                ADMIN,
                "node {node} has the taint {taint}, which none of the {jobs} waiting jobs tolerates",
            ),
            Reason("NodeFull", TURN, "node {node} is full: {free} free; {holders} hold most of it"),
            Reason("NodeUnwanted", NOTHING, "node {node} is free, and no waiting job can use it: {because}"),
            Reason("NodeUnknown", YOU, "there is no node {node}{meant}"),
        ),
    ),
)
REASONS: Final[Mapping[str, Reason]] = {reason.name: reason for group in GROUPS for reason in group.reasons}


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """A reason with the facts of one case: names as text, amounts as Kubernetes writes them, counts as numbers."""

    reason: str
    facts: dict[str, str | int] = {}
    tier_override: str = msgspec.field(default="", name="tierOverride")

    @property
    def tier(self) -> Tier:
        return Tier(self.tier_override) if self.tier_override else REASONS[self.reason].tier

    def __str__(self) -> str:
        """At most two lines of 100 columns."""
        return rendered(self.reason, self.facts)


def finding(reason: str, **facts: str | int) -> Finding:
    assert reason in REASONS, reason
    return Finding(reason, facts)


def rendered(reason: str, facts: Mapping[str, str | int]) -> str:
    """The text of a reason. When it is too long, the longest fact gives way first."""
    shown = {name: _shortened(str(value), MAX_FACT_CHARACTERS) for name, value in facts.items()}
    template = REASONS[reason].text
    text = template.format_map(_Facts(shown))
    while len(text) > MAX_TEXT_CHARACTERS:
        longest = max(shown, key=lambda name: len(shown[name]), default="")
        if not longest or len(shown[longest]) <= 8:
            return text[: MAX_TEXT_CHARACTERS - 1] + "…"
        keep = max(8, len(shown[longest]) - (len(text) - MAX_TEXT_CHARACTERS))
        shown[longest] = _shortened(shown[longest], keep if keep < len(shown[longest]) else len(shown[longest]) - 1)
        text = template.format_map(_Facts(shown))
    return text


class _Facts(dict[str, str]):
    def __missing__(self, _name: str) -> str:
        return ""


def _shortened(text: str, most: int) -> str:
    flat = " ".join(text.split()) if "\n" in text else text
    return flat if len(flat) <= most else flat[: most - 1] + "…"


def named(names: Iterable[str], most: int = MAX_NAMES) -> str:
    """`a, b, c and 4 more`."""
    listed = list(dict.fromkeys(names))
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
