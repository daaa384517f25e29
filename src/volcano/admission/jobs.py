"""/jobs/validate: the rules for a new Job. Updates are in job_updates.py, policies in job_policies.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from volcano.admission.job_partitions import partition_problems
from volcano.admission.job_policies import CHOICES, policy_problems
from volcano.admission.job_updates import too_many_pods, validate_job_update
from volcano.admission.review import Reader, ReviewAnswer, Settings, deny, read
from volcano.admission.topologies import both_tiers_message, gives_both_tiers
from volcano.api import dag, names
from volcano.api.batch import MAX_PODS_PER_JOB, Job, JobVolume, TaskSpec
from volcano.api.jobs.dependencies import DEPENDENCY_KEY, stated_dependencies
from volcano.api.jobs.estimates import annotation_problem, estimate_problem
from volcano.api.jobs.plugins import JOB_PLUGINS, parse_arguments
from volcano.api.meta import JSON, Key
from volcano.api.pods.validation import validate_pod_template
from volcano.api.quantity import Quantity, QuantityError, parse_quantity
from volcano.api.scheduling import ROOT_QUEUE, Queue
from volcano.machinery.admission import UPDATE, Attributes

MAX_WARNINGS: Final = 16
MAX_MESSAGE_CHARACTERS: Final = 32 * 1024


def validate_job(attributes: Attributes, reader: Reader, settings: Settings) -> ReviewAnswer:
    job = read(Job, attributes.object)
    if isinstance(job, ReviewAnswer):
        return job
    if attributes.operation == UPDATE:
        return validate_job_update(job, attributes, settings)
    name = job.name or attributes.name
    if not job.spec.tasks:
        return deny("No task specified in job spec")
    if missing := _missing_plugin_task(job):
        return deny(missing)
    problems = "; ".join(job_problems(job, name, reader)).strip()
    warnings = tuple(plugin_warnings(job))
    if len(problems) > MAX_MESSAGE_CHARACTERS:
        problems = f"{problems[:MAX_MESSAGE_CHARACTERS]}…"
    return ReviewAnswer(denial=problems, warnings=warnings)


def job_problems(job: Job, name: str, reader: Reader) -> list[str]:
    """Everything that is wrong with a new job, in a fixed order."""
    problems: list[str] = []
    if gives_both_tiers(job.spec.network_topology):
        problems.append(both_tiers_message("networkTopology"))
    total, seen = 0, set[str]()
    for index, task in enumerate(job.spec.tasks):
        total += task.replicas
        if task.min_available is not None and task.min_available > task.replicas:
            problems.append(f"'minAvailable' is greater than 'replicas' in task: {task.name}, job: {name}")
        if task.name in seen:
            problems.append(f"duplicated task name {task.name}")
            break
        seen.add(task.name)
        problems += _task_problems(task, index, name)
    problems += [f"job name {name!r} is invalid: {problem}" for problem in names.qualified_name_problems(name)]
    if total > MAX_PODS_PER_JOB:
        problems.append(too_many_pods(total))
    if job.spec.min_available > total:
        problems.append("job 'minAvailable' should not be greater than total replicas in tasks")
    problems += _estimate_problems(job)
    problems += _with_choices("", policy_problems(job.spec.policies))
    problems += [f"unable to find job plugin: {plugin}" for plugin in job.spec.plugins if plugin not in JOB_PLUGINS]
    problems += volume_problems(job.spec.volumes)
    problems += queue_problems(job.spec.queue, reader)
    try:
        stated_dependencies(job.annotations)
    except ValueError as error:
        problems.append(f"metadata.annotations[{DEPENDENCY_KEY}]: {error}")
    if flaw := _dependency_flaw(job.spec.tasks):
        problems.append(f"job has dependencies between tasks that are not a DAG: {flaw}")
    return problems


def _estimate_problems(job: Job) -> list[str]:
    stated = job.spec.running_estimate
    found = (
        estimate_problem("spec.runningEstimate", stated) if stated is not None else "",
        annotation_problem(job.annotations),
    )
    return [problem for problem in found if problem]


def plugin_warnings(job: Job) -> list[str]:
    """Warnings about arguments that a plugin does not know: it ignores them and those after them."""
    warnings = []
    for name, arguments in job.spec.plugins.items():
        plugin = JOB_PLUGINS.get(name)
        parsed = parse_arguments(plugin, arguments) if plugin is not None else None
        if parsed is not None and parsed.error:
            ignored = ", ".join(repr(argument) for argument in parsed.ignored)
            warnings.append(f"spec.plugins[{name}]: {parsed.error}; ignored: {ignored}"[:1024])
    return warnings[:MAX_WARNINGS]


def volume_problems(volumes: Iterable[JobVolume]) -> list[str]:
    """The first flaw of the job's volumes."""
    paths: set[str] = set()
    for volume in volumes:
        if not volume.mount_path:
            return ["mountPath is required"]
        if volume.mount_path in paths:
            return [f"duplicated mountPath: {volume.mount_path}"]
        paths.add(volume.mount_path)
        if volume.volume_claim is None and not volume.volume_claim_name:
            return ["either VolumeClaim or VolumeClaimName must be specified"]
        if volume.volume_claim is not None and volume.volume_claim_name:
            return [
                f"conflict: volumeClaimName {volume.volume_claim_name} names an existing claim, volumeClaim asks for a "
                "claim to be created; give only one"
            ]
        if volume.volume_claim_name and (found := names.subdomain_problems(volume.volume_claim_name)):
            return [f"invalid volumeClaimName {volume.volume_claim_name}: {', '.join(found)}"]
    return []


def queue_problems(name: str, reader: Reader) -> list[str]:
    """A job needs an open queue that is a leaf."""
    queue = reader.get(Queue, Key("", name))
    if queue is None:
        return [f"unable to find job queue: queue {name} does not exist"]
    problems = []
    if queue.status.state != "Open":
        state = queue.status.state or "not known yet"
        problems.append(f"can only submit job to queue with state `Open`, queue `{name}` status is `{state}`")
    if name == ROOT_QUEUE:
        problems.append("can not submit job to root queue")
    elif reader.where(Queue, "parent", name):
        problems.append(f"can only submit job to leaf queue, queue `{name}` has child queues")
    return problems


def _task_problems(task: TaskSpec, index: int, job_name: str) -> list[str]:
    problems = _with_choices(f"task {task.name}: ", policy_problems(task.policies))
    pod_name = f"{job_name}-{task.name}-{index}"
    problems += [f"pod name {pod_name!r} is invalid: {problem}" for problem in names.qualified_name_problems(pod_name)]
    flaws = validate_pod_template(task.template, f"spec.tasks[{index}].template")
    problems += [str(flaw) for flaw in flaws]
    if not flaws:
        problems += _numa_problems(task)
    return problems + partition_problems(task)


def _numa_problems(task: TaskSpec) -> list[str]:
    """A NUMA policy can assign whole CPUs only."""
    if task.topology_policy in ("", "none"):
        return []
    pod = task.template.get("spec") or {}
    containers: list[JSON] = [*(pod.get("containers") or ()), *(pod.get("initContainers") or ())]
    return [
        f"the cpu request of container {container.get('name')} in task {task.name} must be a whole number above 0 "
        f"with topologyPolicy {task.topology_policy}"
        for container in containers
        if not _asks_for_whole_cpus(container)
    ]


def _asks_for_whole_cpus(container: JSON) -> bool:
    resources = container.get("resources") or {}
    amounts: dict[str, Any] = resources.get("requests") or resources.get("limits") or {}
    try:
        cpu = parse_quantity(amounts["cpu"]) if "cpu" in amounts else Quantity(0)
    except QuantityError:
        return False
    return cpu.milli > 0 and cpu.milli % 1000 == 0


def _missing_plugin_task(job: Job) -> str:
    """Plugins that cannot work without a certain task: mpi and its master."""
    present = {task.name for task in job.spec.tasks}
    for name, arguments in job.spec.plugins.items():
        plugin = JOB_PLUGINS.get(name)
        for argument in plugin.task_arguments if plugin is not None else ():
            wanted = parse_arguments(JOB_PLUGINS[name], arguments).text(argument)
            if wanted not in present:
                return f"the {argument} task {wanted!r} of job plugin {name} was not found in the job"
    return ""


def _with_choices(prefix: str, problems: list[str]) -> list[str]:
    return [f"{prefix}{problem}; {CHOICES}" for problem in problems]


def _dependency_flaw(tasks: list[TaskSpec]) -> str:
    graph = {task.name: task.depends_on.name if task.depends_on is not None else [] for task in tasks}
    if not any(graph.values()):
        return ""
    for name, targets in graph.items():
        for target, count in Counter(targets).items():
            if count > 1:
                return f"{name} names {target} twice"
    flaw = dag.first_flaw(graph)
    return "" if flaw is None else str(flaw)
