"""The sentence that describes each field of Volcano's kinds, for `kubectl explain` and the API reference.

Types and limits are declared on the structs themselves; api.schemas.structs puts both together. Fields of Kubernetes'
own types, which our kinds embed in pod templates, are described by where Kubernetes documents them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from volcano.api import batch, bus, flow, reservation, scheduling, topology

NETWORK_TOPOLOGY: Final = "How close to each other in the network the pods must be placed, in tiers of HyperNodes."

COMMON: Final[Mapping[str, str]] = {
    "apiVersion": "The group and version of this object's form.",
    "kind": "The kind of object this is.",
    "metadata": "Name, namespace, labels, annotations and the other metadata that every Kubernetes object has.",
    "spec": "What is wanted.",
    "status": "What was found and done; written by the system.",
}
"""Fields that every kind has."""

KIND_DESCRIPTIONS: Final[Mapping[type[msgspec.Struct], str]] = {
    batch.Job: "A batch job of one or more tasks (roles), whose pods are scheduled as a gang.",
    batch.CronJob: "Creates a Job at the times of a cron schedule.",
    bus.Command: "A request to change a Job or a Queue once, such as a suspend; it is deleted when carried out.",
    scheduling.PodGroup: "A group of pods that is scheduled together: at least minMember of them, or none.",
    scheduling.Queue: "A share of the cluster in which jobs wait and run.",
    flow.JobTemplate: "A Job that JobFlows create by name.",
    flow.JobFlow: "A graph of jobs made from JobTemplates, each started when the jobs it depends on are ready.",
    topology.HyperNode: "A part of the cluster's network, such as a rack, with nodes or smaller HyperNodes as members.",
    topology.Numatopology: "The NUMA nodes and CPUs of one cluster node, as its agent measured them.",
    topology.NodeShard: "The nodes that one of several schedulers may place pods on.",
    topology.ColocationConfiguration: "Memory protection for online pods that share nodes with batch pods.",
    reservation.Reservation: "Nodes or amounts that are kept for a holder in a window of time, once or recurring.",
}

FIELDS: Final[Mapping[type[msgspec.Struct], Mapping[str, str]]] = {
    batch.JobSpec: {
        "schedulerName": "The scheduler that places the pods; `volcano` unless it is set.",
        "minAvailable": "How many pods must be able to start together. Fewer are not started at all. Unset: all pods.",
        "volumes": "Volumes that are mounted into every container of the job.",
        "tasks": "The roles of the job, such as a master and its workers, each with a number of equal pods.",
        "policies": "What to do with the job when one of its pods fails, is evicted, completes, and so on.",
        "plugins": "Helpers for the pods, with their arguments: env, ssh, svc, mpi, pytorch, tensorflow, ray.",
        "runningEstimate": "How long the job will probably run once it has started, for example `2h30m`.",
        "queue": "The queue in which the job waits and to which its pods are charged.",
        "maxRetry": "How many times the job may be restarted before it is Failed.",
        "ttlSecondsAfterFinished": "How many seconds after its end the job is deleted. Unset: it is kept.",
        "priorityClassName": "The PriorityClass that orders this job among others and decides whom it may preempt.",
        "minSuccess": "How many pods must succeed for the job to be Completed. Unset: all of them.",
        "networkTopology": NETWORK_TOPOLOGY,
    },
    batch.JobVolume: {
        "mountPath": "The path in every container where the volume appears.",
        "volumeClaimName": "The PersistentVolumeClaim to mount; it is created from volumeClaim if that is given too.",
        "volumeClaim": "The specification of a PersistentVolumeClaim that is created for the job.",
    },
    batch.TaskSpec: {
        "name": "The name of the role; part of the names of its pods.",
        "replicas": "How many pods the role has.",
        "minAvailable": "How many of them must be able to start together. Unset: all of them.",
        "template": "The pod that is created for each replica.",
        "policies": "What to do when a pod of this role fails, completes, and so on, before the job's policies.",
        "topologyPolicy": "How the CPUs of a pod must be aligned with NUMA nodes.",
        "maxRetry": "How many times a pod of this role may be restarted before the role has failed.",
        "dependsOn": "Roles that must have reached a state before pods of this role are created.",
        "partitionPolicy": "Divides the role into groups of pods that are each placed close together.",
    },
    batch.LifecyclePolicy: {
        "action": "What is done: AbortJob, RestartJob, RestartTask, RestartPod, TerminateJob, CompleteJob, and so on.",
        "event": "What happened: PodFailed, PodEvicted, PodPending, TaskCompleted, Unknown, OutOfSync or `*` for any.",
        "events": "Several events with the same action.",
        "exitCode": "The exit code of a failed container for which the action is done; instead of an event.",
        "timeout": "How long the event must last before the action is done.",
    },
    batch.DependsOn: {
        "name": "The names of the roles that come first.",
        "iteration": "Whether `any` or `all` of them must be ready.",
    },
    batch.PartitionPolicy: {
        "totalPartitions": "Into how many groups the pods of the role are divided.",
        "partitionSize": "How many pods each group has.",
        "minPartitions": "How many groups must be able to start together.",
        "networkTopology": NETWORK_TOPOLOGY,
    },
    scheduling.NetworkTopology: {
        "mode": "`hard`: the pods wait until the tier can be kept. `soft`: the tier is preferred.",
        "highestTierAllowed": "The highest tier of HyperNode that the pods may be spread over.",
        "highestTierName": "The name of that tier, instead of its number.",
    },
    batch.JobStatus: {
        "state": "The phase the job is in, since when and why.",
        "minAvailable": "The number of pods that must start together, as it is in force.",
        "taskStatusCount": "How many pods of each role are in each phase.",
        "pending": "How many pods wait to start.",
        "running": "How many pods run.",
        "succeeded": "How many pods have succeeded.",
        "failed": "How many pods have failed.",
        "terminating": "How many pods are being ended.",
        "unknown": "How many pods are on nodes that no longer report.",
        "version": "How many times the job was restarted, suspended or resumed; pods of earlier versions are removed.",
        "retryCount": "How many times the job was restarted after a failure.",
        "runningDuration": "How long the job ran, once it has finished.",
        "controlledResources": "What the plugins have created for the job, by their names.",
        "conditions": "The phases the job has gone through, with their times.",
    },
    batch.JobState: {
        "phase": "Pending, Running, Completed, Failed and the phases between them.",
        "reason": "Why the job is in this phase, in one word.",
        "message": "Why the job is in this phase, in a sentence.",
        "lastTransitionTime": "When the job came into this phase.",
    },
    batch.TaskState: {"phase": "The number of pods in each phase."},
    batch.JobCondition: {
        "status": "The phase.",
        "lastTransitionTime": "When the job came into it.",
    },
    batch.CronJobSpec: {
        "schedule": "The times in cron format, for example `0 3 * * *` for three o'clock every night.",
        "timeZone": "The time zone of the schedule, for example `Europe/Madrid`.",
        "startingDeadlineSeconds": "How late a job may be created when its time was missed.",
        "concurrencyPolicy": "What happens while an earlier one runs: Allow both, Forbid the new or Replace the old.",
        "suspend": "Creates no more jobs while it is true.",
        "jobTemplate": "The Job that is created.",
        "successfulJobsHistoryLimit": "How many completed jobs are kept.",
        "failedJobsHistoryLimit": "How many failed jobs are kept.",
    },
    batch.JobTemplateObject: {
        "metadata": "The labels and annotations of the jobs.",
        "spec": "The specification of the jobs.",
    },
    batch.CronJobStatus: {
        "active": "The jobs that have been created and have not finished.",
        "lastScheduleTime": "The last time of the schedule at which a job was created.",
        "lastSuccessfulTime": "When a job last completed.",
    },
    bus.Command: {
        "action": "What is to be done, for example AbortJob, ResumeJob, OpenQueue, CloseQueue.",
        "target": "The Job or Queue to which it is done.",
        "reason": "Why, in one word.",
        "message": "Why, in a sentence.",
    },
    scheduling.PodGroupSpec: {
        "minMember": "How many pods must be able to start together.",
        "minTaskMember": "How many pods of each role must be able to start together.",
        "queue": "The queue in which the group waits and to which its pods are charged.",
        "priorityClassName": "The PriorityClass that orders the group among others.",
        "minResources": "What must be free before the pods are created, for groups whose pods come later.",
        "networkTopology": NETWORK_TOPOLOGY,
        "subGroupPolicy": "Divides the group into smaller groups with rules of their own.",
    },
    scheduling.SubGroupPolicy: {
        "name": "The name of the policy.",
        "networkTopology": NETWORK_TOPOLOGY,
        "subGroupSize": "How many pods a smaller group has.",
        "minSubGroups": "How many smaller groups must be able to start together.",
        "labelSelector": "The pods to which the policy applies.",
        "matchLabelKeys": "Labels by whose values the pods are divided.",
    },
    scheduling.PodGroupStatus: {
        "phase": "Pending, Inqueue (the pods may be created), Running, Unknown or Completed.",
        "conditions": "What the scheduler found when it last tried to place the group.",
        "running": "How many pods run.",
        "succeeded": "How many pods have succeeded.",
        "failed": "How many pods have failed.",
    },
    scheduling.PodGroupCondition: {
        "type": "What the condition is about: Scheduled or Unschedulable.",
        "status": "True, False or Unknown.",
        "transitionID": "The scheduling cycle that found it.",
        "lastTransitionTime": "When it changed.",
        "reason": "Why, in one word.",
        "message": "Why, in a sentence.",
    },
    scheduling.QueueSpec: {
        "weight": "The queue's part of the cluster beside the other queues' weights, for the proportion plugin.",
        "capability": "The most that the queue may hold of each resource.",
        "reclaimable": "Whether other queues may take back what this queue holds above its share. Unset: they may.",
        "extendClusters": "Other clusters to which jobs may be forwarded; pods of the queue are marked for it.",
        "guarantee": "What is kept free for this queue and is never taken from it.",
        "affinity": "The groups of nodes on which pods of this queue may or should run, for the nodegroup plugin.",
        "type": "A word for what the queue is used for; the scheduler does not read it.",
        "parent": "The queue above this one in the hierarchy. Unset: the root queue.",
        "deserved": "What the queue gets of each resource when others want it too, for the capacity plugin.",
        "priority": "Queues with a higher priority are served first and are reclaimed from last.",
        "dequeueStrategy": "Accepted, and read by nothing: jobs behind one that does not fit are always tried.",
    },
    scheduling.ExtendCluster: {
        "name": "The name of the cluster.",
        "weight": "Its part beside the other clusters.",
        "capacity": "The most that may be sent to it.",
    },
    scheduling.QueueGuarantee: {"resource": "The amount of each resource."},
    scheduling.QueueAffinity: {
        "nodeGroupAffinity": "Groups of nodes to use.",
        "nodeGroupAntiAffinity": "Groups of nodes to avoid.",
    },
    scheduling.NodeGroupRule: {
        "requiredDuringSchedulingIgnoredDuringExecution": "Groups for which the rule must be kept.",
        "preferredDuringSchedulingIgnoredDuringExecution": "Groups for which the rule should be kept.",
    },
    scheduling.QueueStatus: {
        "state": "Open, Closed, Closing or Unknown.",
        "unknown": "How many PodGroups of the queue are in phase Unknown.",
        "pending": "How many PodGroups wait.",
        "running": "How many PodGroups run.",
        "inqueue": "How many PodGroups have been let in and wait to be placed.",
        "completed": "How many PodGroups have completed.",
        "reservation": "Nodes that are kept free for the queue.",
        "allocated": "What the pods of the queue hold.",
    },
    scheduling.QueueReservation: {
        "nodes": "The names of the nodes.",
        "resource": "What they have in all.",
    },
    flow.JobTemplateStatus: {"jobDependsOnList": "The jobs that were made from this template."},
    flow.JobFlowSpec: {
        "flows": "The jobs of the flow, each made from the JobTemplate of its name.",
        "jobRetainPolicy": "Whether the jobs are kept (`retain`) or deleted (`delete`) when the flow has succeeded.",
    },
    flow.FlowEntry: {
        "name": "The JobTemplate from which the job is made.",
        "dependsOn": "What must be ready before the job is created.",
        "patch": "What is changed of the template for this flow.",
    },
    flow.FlowDependsOn: {
        "targets": "The jobs of the flow that come first.",
        "probe": "When a job counts as ready. Unset: when it has Completed.",
    },
    flow.FlowProbe: {
        "httpGetList": "HTTP requests to pods of the job that must be answered.",
        "tcpSocketList": "TCP ports of pods of the job that must accept a connection.",
        "taskStatusList": "Phases that roles of the job must have reached.",
    },
    flow.HttpGet: {
        "taskName": "The role whose pods are asked.",
        "path": "The path of the request.",
        "port": "The port of the pods.",
        "httpHeader": "A header that is sent with the request.",
    },
    flow.HttpHeader: {"name": "The header's name.", "value": "The header's value."},
    flow.TcpSocket: {"taskName": "The role whose pods are tried.", "port": "The port of the pods."},
    flow.TaskStatusProbe: {"taskName": "The role.", "phase": "The phase that its pods must have reached."},
    flow.FlowPatch: {"jobSpec": "Fields that replace those of the template's specification."},
    flow.JobFlowStatus: {
        "pendingJobs": "The jobs that wait.",
        "runningJobs": "The jobs that run.",
        "failedJobs": "The jobs that have failed.",
        "completedJobs": "The jobs that have completed.",
        "terminatedJobs": "The jobs that were terminated.",
        "unKnowJobs": "The jobs in a phase that is not known.",
        "jobStatusList": "Each job of the flow with its times and restarts.",
        "conditions": "Each job of the flow with its phase and pods, by name.",
        "state": "The phase of the flow as a whole.",
    },
    flow.FlowJobStatus: {
        "name": "The name of the job.",
        "state": "The phase of the job.",
        "startTimestamp": "When the job started.",
        "endTimestamp": "When the job ended.",
        "restartCount": "How many times the job was restarted.",
        "runningHistories": "The phases the job has gone through.",
    },
    flow.RunningHistory: {
        "startTimestamp": "When the phase began.",
        "endTimestamp": "When the phase ended.",
        "state": "The phase.",
    },
    flow.FlowCondition: {
        "phase": "The phase of the job.",
        "createTime": "When the job was created.",
        "runningDuration": "How long the job ran.",
        "taskStatusCount": "How many pods of each role are in each phase.",
    },
    flow.JobFlowState: {"phase": "Pending, Running, Succeed, Failed or Terminating."},
    topology.HyperNodeSpec: {
        "tier": "How far up in the network this part is; nodes below a smaller tier reach each other faster.",
        "tierName": "A name for the tier, such as `rack`.",
        "members": "The nodes or the HyperNodes of a lower tier that belong to it.",
    },
    topology.Member: {
        "type": "Whether the selector selects nodes (`Node`) or HyperNodes (`HyperNode`).",
        "selector": "Which ones.",
    },
    topology.MemberSelector: {
        "exactMatch": "The one of this name.",
        "regexMatch": "Those whose names match a regular expression.",
        "labelMatch": "The nodes with these labels.",
    },
    topology.ExactMatch: {"name": "The name."},
    topology.RegexMatch: {"pattern": "A regular expression in RE2 syntax."},
    topology.HyperNodeStatus: {
        "conditions": "Whether the members could be found.",
        "nodeCount": "How many nodes belong to it, those of its members included.",
    },
    topology.NumatopologySpec: {
        "policies": "The settings of the node's CPU and topology manager.",
        "resReserved": "What is kept for the system.",
        "numares": "For each resource, what it has on which NUMA nodes.",
        "cpuDetail": "For each CPU, its NUMA node, socket and core.",
        "podAllocations": "The CPUs and devices that running pods hold.",
    },
    topology.NumaResource: {
        "allocatable": "The CPUs, by number, that pods may use.",
        "capacity": "How many there are in all.",
    },
    topology.CpuDetail: {
        "numa": "The number of the NUMA node.",
        "socket": "The number of the socket.",
        "core": "The number of the core.",
    },
    topology.PodAllocation: {
        "uid": "The pod's unique identifier.",
        "name": "The pod's name.",
        "namespace": "The pod's namespace.",
        "containerAllocations": "What each of its containers holds.",
    },
    topology.ContainerAllocation: {
        "name": "The container's name.",
        "allocations": "For each NUMA node and resource, what it holds.",
    },
    topology.NodeShardSpec: {"nodesDesired": "The nodes that the scheduler should use."},
    topology.NodeShardStatus: {
        "lastUpdateTime": "When the status was written.",
        "nodesInUse": "The nodes that the scheduler uses now.",
        "nodesToRemove": "The nodes that the scheduler gives up.",
        "nodesToAdd": "The nodes that the scheduler takes over.",
    },
    topology.ColocationConfigurationSpec: {
        "selector": "The pods that are protected.",
        "memoryQos": "The memory limits of their control groups, in percent.",
    },
    topology.MemoryQos: {
        "highRatio": "The part of the limit above which the pod's memory is reclaimed hard (memory.high).",
        "lowRatio": "The part of the request that is reclaimed last (memory.low).",
        "minRatio": "The part of the request that is never reclaimed (memory.min).",
    },
    topology.ColocationConfigurationStatus: {"conditions": "Whether the configuration is applied."},
    reservation.ReservationSpec: {
        "queue": "The queue whose jobs, and those of queues below it, may use what is kept.",
        "namespace": "The namespace whose jobs may use what is kept. With several holders stated, all must hold.",
        "user": "The user whose jobs may use what is kept, by the annotation volcano.sh/submitted-by.",
        "maintenance": "No job may use what is kept; instead of a holder.",
        "start": "When the window begins. With a schedule: windows that would begin earlier are left out.",
        "duration": "How long a window is, for example `2h`.",
        "schedule": "A cron schedule at whose times windows begin, for example `0 14 * * 1-5`. Unset: one window.",
        "timeZone": "The time zone of the schedule, such as `Europe/Berlin`. Unset: UTC.",
        "until": "No window of the schedule begins at this time or later. Unset: there is no end.",
        "nodes": "The nodes that are kept, whole or, with resources, as much of them together. Unset: any nodes.",
        "resources": "The amounts that are kept, over all nodes or those stated. Unset: the nodes are kept whole.",
    },
    reservation.ReservationStatus: {
        "phase": "Waiting: the next window has not begun. Active: it is now. Ended: there is no window left.",
        "start": "When the present or the next window begins.",
        "end": "When it ends.",
        "kept": "What will be free for the holder at that time, or used by it, by the estimated ends of what runs.",
        "missing": "What others are expected to use then, so that it cannot be kept.",
        "nodes": "The first of the nodes that keep it.",
        "nodeCount": "How many nodes keep it.",
    },
}


def field_description(struct: type[msgspec.Struct], field: str) -> str:
    """The sentence for one field of a struct; an empty string where the table has none."""
    return FIELDS.get(struct, {}).get(field) or (COMMON.get(field, "") if struct in KIND_DESCRIPTIONS else "")


def core_field_description(schema_name: str, field: str) -> str:
    """Where a field of one of Kubernetes' own types belongs; Kubernetes' documentation describes it."""
    return f"Field {field} of Kubernetes' {schema_name.rsplit('.', 1)[-1]}."
