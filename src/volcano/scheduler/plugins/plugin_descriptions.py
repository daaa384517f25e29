"""What each plugin does and takes, for people: docs/reference/plugins.md is generated from this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.api.device_families import VENDORS
from volcano.scheduler.framework.described_policy import DescribedPolicy

PACKING: Final = "the weight of"
VERBS_OF_EXTENDERS: Final = {
    "onSessionOpen": "when a cycle begins",
    "onSessionClose": "when a cycle ends",
    "predicate": "which nodes a pod may use",
    "prioritize": "how good nodes are for a pod",
    "preemptable": "which pods may be preempted",
    "reclaimable": "which pods may be reclaimed",
    "queueOverused": "whether a queue holds more than its share",
    "jobEnqueueable": "whether a job may enter its queue",
    "jobEnqueued": "when a job has entered",
    "jobReady": "whether a job may start",
    "allocateFunc": "when a pod was given a node",
    "deallocateFunc": "when that was undone",
}
PLUGIN_DESCRIPTIONS: Final[Mapping[str, DescribedPolicy]] = {
    "binpack": DescribedPolicy(
        "Fills nodes one after another.",
        {
            "binpack.weight": ("1", "of the plugin beside other scores; 0 switches it off"),
            "binpack.cpu": ("1", f"{PACKING} CPUs"),
            "binpack.memory": ("1", f"{PACKING} memory"),
            "binpack.resources": ("", "further resources that count, separated by commas"),
            "binpack.resources.NAME": ("1", f"{PACKING} that resource"),
            "binpack.accelerators": (
                "",
                f"{PACKING} GPUs and NPUs: if nodes have any, the best fit counts (what would stay free); 8 is a good"
                " value. By default they decide only between nodes that are equal otherwise; 0: not at all",
            ),
        },
    ),
    "capacity": DescribedPolicy(
        "Queues have what they deserve, are guaranteed and may have at most; with `enableHierarchy: true` in a tree."
        " Not together with `proportion`. The capability may limit claimed devices, as `deviceclass/CLASS` (a number)"
        " and `DIMENSION.deviceclass/CLASS`.",
        {
            "ancestorReclaimLevel": ("0", "how many levels of ancestors reclaiming looks at"),
            "capacity.DynamicResourceAllocationEnable": ("true", "whether limits of claimed devices count"),
            "capacity.DRAConsumableCapacityEnable": ("true", "whether limits of dimensions of claimed devices count"),
        },
    ),
    "cdp": DescribedPolicy(
        "A pod with the label or annotation `volcano.sh/cooldown-time` is not evicted until that long after it was"
        " scheduled."
    ),
    "conformance": DescribedPolicy("Pods of kube-system, and with a system priority class, are never evicted."),
    "deviceshare": DescribedPolicy(
        "Accelerator cards shared by several pods, cut into MIG instances or by templates. Turn on the families that"
        " your nodes have ([how to](../howto/gpus.md)). Pods choose cards with the annotations"
        " `volcano.sh/vgpu-use-gpuuuid`, `volcano.sh/vgpu-nouse-gpuuuid`, `nvidia.com/use-gputype`,"
        " `nvidia.com/nouse-gputype`, `volcano.sh/vgpu-mode` (`hami-core`, `mig`) and"
        " `volcano.sh/vgpu-podgroup-policy: spread`; `hami.io/gpu-scheduler-policy` and"
        " `hami.io/node-scheduler-policy` (`binpack`, `spread`) hold for one pod. A node whose register cannot be read"
        " takes no pod of the family, and says why.",
        {
            "deviceshare.VGPUEnable": (
                "false",
                "cards of the volcano-vgpu device plugin: `volcano.sh/vgpu-number`, `-memory`, `-cores`, and"
                " `-memory-percentage` where the device configuration names it",
            ),
            "deviceshare.GPUSharingEnable": ("false", "memory of cards: `volcano.sh/gpu-memory`"),
            "deviceshare.GPUNumberEnable": ("false", "whole cards: `volcano.sh/gpu-number`"),
            "deviceshare.AscendHAMiVNPUEnable": (
                "false",
                "Ascend 310P and 910 cards as HAMi's device plugin registers them: `huawei.com/Ascend910B3`, `-memory`,"
                " `-core`; memory is rounded up to a template, cards of one network are taken together",
            ),
            "deviceshare.AscendMindClusterVNPUEnable": (
                "false",
                "cores of Ascend 310P chips as MindCluster registers them: `huawei.com/npu-core`, labels"
                " `vnpu-level` and `vnpu-dvpp`",
            ),
            "deviceshare.Families": (
                "",
                f"more families by number, memory and cores, separated by commas: {', '.join(sorted(VENDORS))};"
                " `ascend-rings`: whole `huawei.com/Ascend910` within an HCCS ring of four",
            ),
            "deviceshare.DeviceConfig": (
                "",
                "names of resources, MIG geometries and templates, as in `device-config.yaml` of the device plugins;"
                " their ConfigMap itself is not read",
            ),
            "deviceshare.NodeLockEnable": (
                "false",
                "binds wait for the node's lock (an annotation), which the device plugin removes; a lock holds for at"
                " most five minutes",
            ),
            "deviceshare.SchedulePolicy": ("", "`binpack` or `spread`: how cards and nodes are chosen"),
            "deviceshare.ScheduleWeight": ("0", "of that choice beside other scores"),
            "deviceshare.GPUExclusiveRules": ("", "a list of label maps: pods that match the same one share no card"),
        },
    ),
    "drf": DescribedPolicy(
        "Jobs with the smaller dominant share first; with `enableHierarchy: true` also queues, by the annotations"
        " `volcano.sh/hierarchy` and `volcano.sh/hierarchy-weights`."
    ),
    "easy": DescribedPolicy(
        "EASY backfill. The first waiting jobs that do not fit get a reservation: the earliest time at which the gang"
        " fits, computed from the estimated ends of what runs. Another job starts before them only if it ends by that"
        " time or uses only what the reservation leaves. Put it into the first tier, so that its vote lets the first"
        " job in ([estimates and reservations](../time.md)).",
        {
            "easy.order": ("submit", "`submit`, `priority` or `shortest`: which job is the first"),
            "easy.strict": ("false", "true: nothing starts before the first job"),
            "easy.reservations": ("1", "how many waiting jobs get a reservation"),
            "easy.scope": ("queue", "`queue` or `cluster`: where jobs are ordered"),
            "easy.aging": ("0", "points that an hour of waiting adds to a priority, with `easy.order: priority`"),
            "easy.default-estimate": ("24h", "the run time of jobs without an estimate"),
        },
    ),
    "extender": DescribedPolicy(
        "Asks an HTTP service. Only the questions that are given a verb are asked.",
        {
            "extender.urlPrefix": ("", "the address of the service"),
            "extender.httpTimeout": ("1s", "how long an answer may take"),
            "extender.ignorable": ("false", "whether the cycle goes on without the service when it does not answer"),
            "extender.managedResources": ("", "only pods that name one of these resources concern it"),
            **{f"extender.{verb}Verb": ("", f"asked: {question}") for verb, question in VERBS_OF_EXTENDERS.items()},
        },
    ),
    "fragmentation": DescribedPolicy(
        "Pods go where the fewest accelerators become unusable for the pods that are typical: those that wait, run or"
        " have just ended. Whole accelerators by their resource (`nvidia.com/gpu`, `huawei.com/Ascend910` …), and with"
        " `deviceshare` shares of cards, where it also chooses the card. Pods without accelerators keep off nodes whose"
        " CPUs and memory their free accelerators need. Use it instead of `nodeorder` and `binpack`"
        " ([decision 84](../decisions/0084-fragmentation.md)).",
        {
            "fragmentation.weight": ("1", "1: an accelerator that becomes unusable costs 100 points of score"),
            "fragmentation.resources": ("", "what is measured instead of all accelerators, separated by commas"),
        },
    ),
    "gang": DescribedPolicy("A job starts whole (`minMember`, `minTaskMember`, `minSubGroups`) or not at all."),
    "network-topology-aware": DescribedPolicy(
        "Jobs with `networkTopology` are placed in one HyperNode: lower tiers first, up to `highestTierAllowed` (or"
        " the tier called `highestTierName`); `soft` goes up to the whole cluster. Sub-groups (`subGroupPolicy`, a"
        " task's `partitionPolicy`) have a topology of their own. Of equally good HyperNodes the fuller one is taken;"
        " other pods go where it is busy.",
        {
            "weight": ("1", "of the plugin beside other scores"),
            "hypernode.binpack.cpu": ("1", f"{PACKING} CPUs"),
            "hypernode.binpack.memory": ("1", f"{PACKING} memory"),
            "hypernode.binpack.resources": ("", "further resources that count, separated by commas"),
            "hypernode.binpack.resources.NAME": ("1", f"{PACKING} that resource"),
            "hypernode.binpack.normal-pod.enable": ("true", "whether pods without a topology go where it is busy"),
            "hypernode.binpack.normal-pod.fading": ("0.8", "how much less each higher tier counts for them"),
            "hypernode.gradient.evict.max-hypernodes": ("8", "how many HyperNodes are looked at when pods are evicted"),
        },
    ),
    "nodegroup": DescribedPolicy(
        "Ties queues to groups of nodes (label `volcano.sh/nodegroup-name`) by the queue's `spec.affinity`.",
        {
            "strict": (
                "true",
                "nodes without a group take no pods; false: they take pods of queues without an affinity",
            ),
            "enablePreferredOrder": ("false", "groups that are preferred count in the order in which they are listed"),
        },
    ),
    "nodeorder": DescribedPolicy(
        "Kubernetes' scorers of nodes, each with a weight; 0 switches one off.",
        {
            "leastrequested.weight": ("1", "nodes with much free room"),
            "mostrequested.weight": ("0", "nodes with little free room"),
            "nodeaffinity.weight": ("2", "nodes that the pod prefers"),
            "podaffinity.weight": ("2", "nodes near the pods that it prefers"),
            "balancedresource.weight": ("1", "nodes whose CPUs and memory are used alike"),
            "tainttoleration.weight": ("3", "nodes with few taints that the pod does not tolerate"),
            "imagelocality.weight": ("1", "nodes that have the image"),
            "podtopologyspread.weight": ("2", "domains with few pods like it"),
        },
    ),
    "numa-aware": DescribedPolicy(
        "A Guaranteed pod with the annotation `volcano.sh/numa-topology-policy` goes only where the kubelet's topology"
        " manager would admit it, by the node's Numatopology; fewer NUMA nodes are better.",
        {"weight": ("1", "of the plugin beside other scores")},
    ),
    "overcommit": DescribedPolicy(
        "Lets jobs into their queues as long as they request no more than a multiple of what the cluster has.",
        {"overcommit-factor": ("1.2", "that multiple")},
    ),
    "pdb": DescribedPolicy("Evictions keep to PodDisruptionBudgets."),
    "predicates": DescribedPolicy(
        "Kubernetes' filters of nodes. A pod with resource claims goes where these are allocated; allocating devices"
        " is not there, so the pods of a claim that is not allocated wait.",
        {
            "predicate.NodeAffinityEnable": ("true", "node selectors and affinities"),
            "predicate.NodePortsEnable": ("true", "ports of the host"),
            "predicate.TaintTolerationEnable": ("true", "taints"),
            "predicate.PodAffinityEnable": ("true", "affinities to other pods"),
            "predicate.NodeVolumeLimitsEnable": ("true", "how many volumes a node can attach"),
            "predicate.VolumeZoneEnable": ("true", "zones of volumes"),
            "predicate.PodTopologySpreadEnable": ("true", "spread constraints"),
            "predicate.VolumeBindingEnable": ("true", "where volumes can be bound"),
            "predicate.CacheEnable": (
                "false",
                "pods with the same annotation `volcano.sh/template-uid` are judged alike",
            ),
            "predicate.DynamicResourceAllocationEnable": ("", "accepted, without effect"),
            "dynamicresources.filterTimeoutSeconds": ("", "accepted, without effect"),
            "volumebinding.weight": ("", "accepted, without effect"),
            "volumebinding.bindTimeoutSeconds": ("", "accepted, without effect"),
            "volumebinding.shape": ("", "accepted, without effect"),
        },
    ),
    "priority": DescribedPolicy(
        "More important jobs and tasks come first. A job never preempts one of equal priority.",
        {"priority.aging": ("0", "points that an hour of waiting adds to a job's priority when jobs are ordered")},
    ),
    "proportion": DescribedPolicy(
        "Queues share the cluster by weight. A queue that holds nothing may run one gang that is larger than its share,"
        " in room that no other queue can use. Not together with `capacity`."
    ),
    "rescheduling": DescribedPolicy(
        "Names pods on busy nodes for `shuffle` while other nodes are idle. It needs measured load (section `metrics`"
        " of the configuration); loads are ten-minute averages.",
        {
            "interval": ("5m", "the time between two looks"),
            "strategies": (
                "",
                "a list of `{name: lowNodeUtilization, params: {thresholds, targetThresholds}}` with percentages of"
                " `cpu` and `memory` (100 each)",
            ),
            "metricsPeriod": ("", "accepted, without effect"),
        },
    ),
    "reservations": DescribedPolicy(
        "Refuses nodes and amounts that [Reservations](../time.md#advance-reservations) keep to jobs of others that"
        " would run into a window. It need not be configured: it takes part, in a tier before all others, while a"
        " Reservation has a window to come. In a window it lets the holder's jobs into their queues as far as they"
        " fit what is kept."
    ),
    "resource-strategy-fit": DescribedPolicy(
        "Spreads or packs each resource. Pods may state their own strategy with"
        " `volcano.sh/resource-strategy-scoring-type` and `volcano.sh/resource-strategy-weight`.",
        {
            "resourceStrategyFitWeight": ("10", "of the plugin beside other scores"),
            "resources": ("", "`{NAME: {type: MostAllocated, weight: 1}}` or `LeastAllocated`; a name may end in `*`"),
            "sra": (
                "",
                '`{enable, resources: "a, b", weight, resourceWeight}`: nodes with scarce resources are left to pods'
                " that"
                " request them",
            ),
            "proportional": (
                "",
                '`{enable, resources, resourceProportion: {"NAME.cpu": 4, "NAME.memory": 8}}`: so many cores and'
                " gigabytes"
                " stay free beside every free one",
            ),
        },
    ),
    "resourcequota": DescribedPolicy("Jobs beyond their namespace's ResourceQuota do not enter their queue."),
    "sla": DescribedPolicy(
        "A job that has waited too long is let in and served first.",
        {"sla-waiting-time": ("", "how long; a job's own annotation of that name takes precedence")},
    ),
    "task-topology": DescribedPolicy(
        "Tasks of a job share nodes or keep apart by role: annotations `volcano.sh/task-topology-affinity` and"
        " `volcano.sh/task-topology-anti-affinity` of the PodGroup (`ps,worker;chief`), and"
        " `volcano.sh/task-topology-task-order`.",
        {"task-topology.weight": ("1", "of the plugin beside other scores")},
    ),
    "tdm": DescribedPolicy(
        'Nodes labelled `volcano.sh/revocable-zone=NAME` are used by pods annotated `volcano.sh/revocable-zone: "*"`'
        " during"
        " some hours; afterwards `shuffle` evicts them, as many of each job as its `volcano.sh/jdb-min-available` or"
        " `volcano.sh/jdb-max-unavailable` allows.",
        {
            "tdm.revocable-zone.NAME": ("", 'the hours of that zone, such as `"23:00-5:00"`, in UTC'),
            "tdm.evict.period": ("1m", "the time between two evictions"),
        },
    ),
    "usage": DescribedPolicy(
        "Keeps away from hot nodes, by measured load (section `metrics` of the configuration).",
        {
            "usage.weight": ("5", "of the plugin beside other scores"),
            "cpu.weight": ("1", f"{PACKING} the load of CPUs"),
            "memory.weight": ("1", f"{PACKING} the load of memory"),
            "thresholds": ("", "`{cpu: 80, mem: 80}`: the load in per cent above which a node takes no further pods"),
            "estimator": (
                "",
                "how the load of pods that have just started is estimated: `request_ratio`, `burst_ratio`,"
                " `risk_threshold`, `risk_factor`, `be_cpu`, `be_mem`",
            ),
        },
    ),
}
