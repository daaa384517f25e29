"""The closed list of reasons of Events that components write, with what each is about and means.

An architecture test compares it with the code, and docs/reference/events.md is generated from it.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class EventReason(NamedTuple):
    """One reason of one component. A reason may occur with several kinds and components."""

    reason: str
    kinds: tuple[str, ...]
    meaning: str
    is_warning: bool = False


class ComponentEvents(NamedTuple):
    """A component and the reasons it uses."""

    component: str
    reasons: tuple[EventReason, ...]


def _warning(reason: str, kinds: str, meaning: str) -> EventReason:
    return EventReason(reason, tuple(kinds.split()), meaning, is_warning=True)


def _normal(reason: str, kinds: str, meaning: str) -> EventReason:
    return EventReason(reason, tuple(kinds.split()), meaning)


EVENT_SOURCES: Final = (
    ComponentEvents(
        "scheduler",
        (
            _normal("Scheduled", "Pod PodGroup", "the pod has its node; the gang has room for all of its minimum"),
            _warning("FailedScheduling", "Pod", "no node takes the pod now; the message counts nodes by reason"),
            _warning("Unschedulable", "PodGroup", "the gang waits; the message has the reason"),
            _warning("Evict", "Pod PodGroup", "a pod is evicted to make room for others; the message says for whom"),
            _normal("InvalidTaskTopology", "PodGroup", "the annotations of the plugin task-topology cannot be used"),
            _normal("ConfigurationTaken", "ConfigMap", "the scheduler uses this configuration from now on"),
            _warning("ConfigurationRefused", "ConfigMap", "the configuration has errors; the one before stays in use"),
        ),
    ),
    ComponentEvents(
        "job controller",
        (
            _normal("CommandIssued", "Job", "a Command asks for an action"),
            _normal("ExecuteAction", "Job", "an action of a policy or of a Command begins"),
            _warning("PodGroupPending", "Job", "the job's PodGroup waits; the message is the scheduler's"),
            _warning("QueueNotFound", "Job", "the job's queue does not exist"),
            _warning("Dependency", "Job", "the job waits for other jobs"),
            _warning("DependencyNeverSatisfied", "Job", "the job waits for something that cannot happen any more"),
            _warning("JobArrayTaskLimit", "Job", "as many jobs of the array run as may run at a time"),
            _warning("OlderJobEnding", "Job", "objects of an older job with this name still exist"),
            _warning("PluginError", "Job", "a plugin of the job cannot be used, or its objects cannot be made"),
            _warning("PVCError", "Job", "a persistent volume claim does not exist or cannot be made"),
            _warning("PodGroupError", "Job", "the PodGroup cannot be made or changed"),
            _warning("FailedCreate", "Job", "a pod cannot be created"),
            _warning("FailedDelete", "Job", "a pod cannot be deleted"),
        ),
    ),
    ComponentEvents(
        "other controllers",
        (
            _warning("OpenQueue", "Queue", "the queue cannot be opened now"),
            _normal("CloseQueue", "Queue", "the queue is closed, or closes"),
            _normal("Created", "JobFlow", "the job of a step is created"),
            _normal("Succeeded", "JobFlow", "all steps are completed"),
            _warning("Failed", "JobFlow", "a step did not complete"),
            _warning("JobVanished", "JobFlow", "the job of a step was deleted"),
            _warning("SyncJobFlow", "JobFlow", "the job of a step cannot be made"),
            _warning("ForeignJob", "JobFlow CronJob", "a job that belongs to somebody else has the name"),
            _normal("SuccessfulCreate", "CronJob", "a job of the schedule is created"),
            _warning("InvalidSchedule", "CronJob", "no time fits the schedule"),
            _warning("InvalidTimeZone", "CronJob", "the time zone is not known"),
            _warning("UnParseableCronJobSchedule", "CronJob", "the schedule cannot be read"),
            _warning("UnsupportedSchedule", "CronJob", "the schedule contains TZ; spec.timeZone is the place for it"),
            _warning("TooManyMissedTimes", "CronJob", "more than 100 times were missed; only the last is made good"),
            _warning("ForbidConcurrent", "CronJob", "a job still runs, so that the next one is not made"),
            _warning("ReplaceConcurrent", "CronJob", "a running job is deleted to make room for the next one"),
            _normal("SawCompletedJob", "CronJob", "a job of the schedule has ended"),
            _warning("StaleReference", "CronJob", "a job that was running does not exist any more"),
            _warning("OrphanedJob", "CronJob", "a job has this owner and is not of its schedule"),
            _warning("UnsupportedSource", "ConfigMap", "no source of a network topology has this name"),
            _warning("InvalidConfiguration", "ConfigMap", "the configuration of sharding cannot be used"),
        ),
    ),
    ComponentEvents("admission", (_warning("Admit", "PodGroup Job", "pods are refused; the message says why"),)),
    ComponentEvents(
        "agent (embedded)",
        (
            _warning("FailedMount", "Pod", "a volume cannot be made"),
            _warning("FailedCreatePodSandBox", "Pod", "the pod's network or files cannot be made"),
            _warning("MissingClusterDNS", "Pod", "the pod's DNS settings cannot be applied on this machine"),
            _warning("MissingCapability", "Pod", "the user of the agent lacks a right that the pod needs"),
            _warning("ErrImageNeverPull", "Pod", "the image means nothing here; see docs/images.md"),
            _warning("CreateContainerConfigError", "Pod", "an object that the container refers to does not exist"),
            _warning("CreateContainerError", "Pod", "the container's files cannot be made"),
            _warning("StartError", "Pod", "the command cannot be started"),
            _warning("BackOff", "Pod", "a failed container is started again, after a pause"),
            _warning("Unhealthy", "Pod", "a probe failed"),
            _normal("Killing", "Pod", "a container is ended because a probe failed"),
            _normal("DeadlineExceeded", "Pod", "the pod ran longer than activeDeadlineSeconds"),
            _warning("NotServed", "Service", "a port of the service cannot be opened on this machine"),
            _normal("ProvisioningSucceeded", "PersistentVolumeClaim", "a folder was made for the claim"),
            _warning("ProvisioningFailed", "PersistentVolumeClaim", "a folder cannot be what the claim asks for"),
        ),
    ),
    ComponentEvents(
        "cluster controllers (embedded)",
        (
            _normal("ScalingReplicaSet", "Deployment", "a ReplicaSet gets another number of replicas"),
            _normal("SuccessfulCreate", "ReplicaSet StatefulSet DaemonSet Job CronJob", "pods or jobs were created"),
            _normal("SuccessfulDelete", "ReplicaSet CronJob", "pods or jobs were deleted"),
            _normal("Completed", "Job", "the batch/v1 Job is complete"),
            _normal("Suspended", "Job", "the batch/v1 Job is suspended"),
            _warning("BackoffLimitExceeded", "Job", "too many pods of the batch/v1 Job failed"),
            _warning("DeadlineExceeded", "Job", "the batch/v1 Job ran longer than activeDeadlineSeconds"),
            _normal("JobAlreadyActive", "CronJob", "a job of the batch/v1 CronJob still runs"),
            _normal("SawCompletedJob", "CronJob", "a job of the batch/v1 CronJob has ended"),
            _warning("TooManyMissedTimes", "CronJob", "more than 100 times were missed"),
            _warning("InvalidTimeZone", "CronJob", "the time zone is not known"),
            _warning("UnParseableCronJobSchedule", "CronJob", "the schedule cannot be read"),
            _warning("ClaimLost", "PersistentVolumeClaim", "the claim's volume does not exist any more"),
            _warning("FailedResourceClaimCreation", "Pod", "a ResourceClaim of the pod cannot be made"),
            _normal("NodeNotReady", "Node", "the node's lease was not renewed"),
            _normal("SuccessfulRescale", "HorizontalPodAutoscaler", "the workload gets another number of replicas"),
            _warning("FailedGetScale", "HorizontalPodAutoscaler", "the workload does not exist"),
            _warning("FailedGetResourceMetric", "HorizontalPodAutoscaler", "pods do not say what they use"),
            _warning("FailedGetContainerResourceMetric", "HorizontalPodAutoscaler", "a container does not say it"),
            _warning("InvalidMetricSourceType", "HorizontalPodAutoscaler", "metrics of this type are not supported"),
            _warning("FailedComputeMetricsReplicas", "HorizontalPodAutoscaler", "no metric gives a number of replicas"),
        ),
    ),
)
EVENT_REASONS: Final = frozenset(each.reason for source in EVENT_SOURCES for each in source.reasons)
