"""From sbatch's options to a Volcano Job: one pod for each node, the script in the first of them. Pure."""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, TypeVar

from volcano.api.durations import format_duration
from volcano.api.jobs.dependencies import (
    ARRAY_INDEX_KEY,
    ARRAY_KEY,
    ARRAY_LIMIT_KEY,
    DEPENDENCY_KEY,
)
from volcano.api.jobs.estimates import ESTIMATE_KEY, MAX_ESTIMATE
from volcano.api.meta import JSON
from volcano.api.pods.required_nodes import requiring_nodes
from volcano.cli.resources import JOBS
from volcano.cli.slurm.options import GivenOption, OptionRefused
from volcano.cli.slurm.pod_script import BATCH, OTHER_NODE, SCONTROL, SRUN, literal
from volcano.cli.slurm.shared_folders import with_folders
from volcano.cli.slurm.shell_functions import function_variables
from volcano.cli.slurm.values import (
    ArraySpec,
    ValueRefused,
    expand_hosts,
    fill_pattern,
    parse_array,
    parse_count,
    parse_gpus,
    parse_memory,
    parse_nodes,
    parse_time,
)

JOB_ID_KEY: Final = "volcano.sh/job-id"
JOB_NAME_LABEL: Final = "volcano.sh/batch-name"
USER_KEY: Final = "volcano.sh/user"
COMMENT_KEY: Final = "volcano.sh/comment"
ACCOUNT_KEY: Final = "volcano.sh/account"
MAX_NAME_CHARACTERS: Final = 36
"""Of the part that the user chose: the names of pods have numbers and the task's name behind it."""
GPU: Final = "nvidia.com/gpu"
SECRET_WORDS: Final = re.compile(r"TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|API_?KEY|ACCESS_?KEY", re.IGNORECASE)
NOT_EXPORTED: Final = re.compile(
    r"_|PWD|OLDPWD|SHLVL|LS_COLORS|TERM|TERMCAP|HOSTNAME|DISPLAY|TMPDIR|KUBECONFIG|COLUMNS|LINES"
    r"|(BASH_FUNC|SLURM|VSUB|SSH|XDG|DBUS|VOLCANO|PYTEST)_.*"
)
VARIABLE_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_EXPORTED_BYTES: Final = 64 * 1024

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Submission:
    """Where and by whom a script is submitted."""

    directory: str
    user: str
    host: str
    environment: Mapping[str, str]
    default_image: str = "python:3"
    namespace: str = "default"
    scheduler: str = "volcano"
    folders: tuple[str, ...] = ()
    """Folders of this machine to mount in the pods."""
    hidden: tuple[str, ...] = ()
    """Folders that cannot be mounted; output files in them are mounted one by one."""
    run_as: JSON | None = None
    """The user of the pods, as their securityContext; None: as the system decides."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """What sbatch's options ask for, read."""

    name: str
    queue: str
    nodes: int
    tasks: int
    cpus_per_task: int
    memory: int
    """Kibibytes for each node; 0: no request."""
    gpus: int
    """For each node."""
    limit: timedelta | None
    array: ArraySpec | None
    settings: Mapping[str, str] = field(default_factory=dict)
    """The remaining options, as given."""
    words: tuple[str, ...] = ()

    @property
    def tasks_per_node(self) -> int:
        return -(-self.tasks // self.nodes)

    @property
    def cpus_per_node(self) -> int:
        return self.tasks_per_node * self.cpus_per_task


def read_request(chosen: Mapping[str, GivenOption], default_name: str) -> BatchRequest:
    """OptionRefused with the line of every value that cannot be used."""
    refused: list[str] = []

    def value(name: str, parse: Callable[[str], T], default: T) -> T:
        given = chosen.get(name)
        if given is None:
            return default
        try:
            return parse(given.value)
        except ValueRefused as error:
            refused.append(f"{given.place}: {given.value!r} {error}")
            return default

    words: list[str] = []
    per_node = value("ntasks-per-node", parse_count, 0) or value("tasks-per-node", parse_count, 0)
    hosts: list[str] = value("nodelist", expand_hosts, list[str]())
    nodes = value("nodes", parse_nodes, 0) or max(1, len(hosts))
    tasks = value("ntasks", parse_count, 0) or nodes * max(1, per_node)
    if "nodes" not in chosen and per_node and "ntasks" in chosen:
        nodes = -(-tasks // per_node)
    nodes = min(nodes, tasks) if "ntasks" in chosen and not per_node else nodes
    cpus = value("cpus-per-task", parse_count, 1)
    gpus = _gpus(value, nodes, -(-tasks // nodes))
    if "cpus-per-gpu" in chosen and gpus:
        cpus = max(cpus, -(-gpus * value("cpus-per-gpu", parse_count, 1) // -(-tasks // nodes)))
    memory = value("mem", parse_memory, 0)
    memory = memory or value("mem-per-cpu", parse_memory, 0) * cpus * -(-tasks // nodes)
    memory = memory or value("mem-per-gpu", parse_memory, 0) * gpus
    queue, comma, _ = chosen["partition"].value.partition(",") if "partition" in chosen else ("default", "", "")
    if comma:
        words.append(f"{chosen['partition'].place}: of several partitions the first is taken: {queue}")
    refused += _wrong_choices(chosen)
    limit, array = value("time", parse_time, None), value("array", parse_array, None)
    value("exclude", expand_hosts, list[str]())
    if refused:
        raise OptionRefused("\n".join(dict.fromkeys(refused)))
    return BatchRequest(
        name=chosen["job-name"].value if "job-name" in chosen else default_name,
        queue=queue,
        nodes=nodes,
        tasks=tasks,
        cpus_per_task=cpus,
        memory=memory,
        gpus=gpus,
        limit=limit,
        array=array,
        settings={name: given.value for name, given in chosen.items()},
        words=tuple(words),
    )


def _gpus(value: Any, nodes: int, tasks_per_node: int) -> int:
    """For each node; --gpus counts for the whole job."""
    per_node: int = value("gres", lambda text: parse_gpus(text, generic=True), 0)
    per_node = per_node or value("gpus-per-node", lambda text: parse_gpus(text, generic=False), 0)
    per_node = per_node or value("gpus-per-task", lambda text: parse_gpus(text, generic=False), 0) * tasks_per_node
    return per_node or -(-value("gpus", lambda text: parse_gpus(text, generic=False), 0) // nodes)


def _wrong_choices(chosen: Mapping[str, GivenOption]) -> list[str]:
    wrong = []
    mode = chosen.get("open-mode")
    if mode is not None and mode.value not in ("append", "truncate"):
        wrong.append(f"{mode.place}: {mode.value!r} is neither append nor truncate")
    constraint = chosen.get("constraint")
    if constraint is not None and not re.fullmatch(r"[\w./=-]+([&|][\w./=-]+)*", constraint.value):
        wrong.append(f"{constraint.place}: {constraint.value!r} is not supported: only labels with & or | between them")
    if constraint is not None and "&" in constraint.value and "|" in constraint.value:
        wrong.append(f"{constraint.place}: {constraint.value!r} mixes & and |, which is not supported")
    return wrong


# -- the job ----------------------------------------------------------------------------------------------------------
def job_name(request: BatchRequest, number: int, index: int | None = None) -> str:
    base = re.sub(r"[^a-z0-9]+", "-", request.name.lower()).strip("-")[:MAX_NAME_CHARACTERS].strip("-") or "batch"
    return f"{base}-{number}" if index is None else f"{base}-{number}-{index}"


def host_names(name: str, nodes: int) -> list[str]:
    """The pods of a job, which are its nodes."""
    return [f"{name}-batch-0", *(f"{name}-node-{index}" for index in range(nodes - 1))]


def batch_job(
    request: BatchRequest,
    script: str,
    arguments: list[str],
    where: Submission,
    *,
    number: int,
    array_number: int = 0,
    index: int | None = None,
    dependency: str = "",
) -> JSON:
    """The Job of a script, or of one index of its array."""
    name = job_name(request, array_number or number, index)
    hosts = host_names(name, request.nodes)
    labels = {
        JOB_ID_KEY: str(number),
        JOB_NAME_LABEL: label_value(request.name),
        USER_KEY: label_value(where.user),
    }
    annotations = {DEPENDENCY_KEY: dependency} if dependency else {}
    if index is not None and request.array is not None:
        labels |= {ARRAY_KEY: str(array_number), ARRAY_INDEX_KEY: str(index)}
        annotations |= {ARRAY_LIMIT_KEY: str(request.array.limit)} if request.array.limit else {}
    for option, key in (("comment", COMMENT_KEY), ("account", ACCOUNT_KEY)):
        annotations |= {key: request.settings[option]} if option in request.settings else {}
    if request.limit is not None and request.limit <= MAX_ESTIMATE:
        annotations[ESTIMATE_KEY] = format_duration(request.limit)
    facts = slurm_variables(request, where, name, number=number, array_number=array_number, index=index)
    variables = {**exported(request.settings.get("export", "ALL"), where.environment)[0], **facts}
    files = batch_files(request, facts, where, hosts[0])
    batch = _container(request, where, "batch", BATCH, arguments)
    programs = {"VSUB_SCRIPT": script, "VSUB_SRUN": SRUN, "VSUB_SCONTROL": SCONTROL}
    programs |= function_variables(request.settings.get("export", "ALL"), where.environment)
    batch["env"] = _environment({**variables, **files, **programs})
    batch["workingDir"] = "/"
    outputs = [files[each] for each in ("VSUB_OUTPUT", "VSUB_ERROR") if os.path.dirname(files[each]) in where.hidden]
    tasks = [_task(request, where, "batch", 1, batch, outputs)]
    if request.nodes > 1:
        other = _container(request, where, "node", OTHER_NODE, [])
        tasks[0]["policies"] = [
            {"event": "TaskCompleted", "action": "CompleteJob"},
            {"event": "PodFailed", "action": "TerminateJob"},
        ]
        tasks.append(_task(request, where, "node", request.nodes - 1, other))
    spec: JSON = {
        "minAvailable": request.nodes,
        "schedulerName": where.scheduler,
        "queue": request.queue,
        "policies": [
            {"event": "PodEvicted", "action": "TerminateJob" if "no-requeue" in request.settings else "RestartJob"}
        ],
        "tasks": tasks,
    }
    if request.nodes > 1:
        spec["plugins"] = {"ssh": [], "svc": [], "env": []}
    metadata: JSON = {"name": name, "namespace": where.namespace, "labels": labels}
    metadata |= {"annotations": annotations} if annotations else {}
    return {"apiVersion": JOBS.api_version, "kind": JOBS.kind, "metadata": metadata, "spec": spec}


def needed_folders(request: BatchRequest, where: Submission) -> list[str]:
    """The working directory, and the folders of output and input files."""
    facts = {"SLURM_JOB_ID": "0"} | ({"SLURM_ARRAY_JOB_ID": "0"} if request.array else {})
    files = batch_files(request, facts, where, "")
    paths = [files[name] for name in ("VSUB_OUTPUT", "VSUB_ERROR", "VSUB_INPUT") if files[name]]
    return [files["VSUB_CHDIR"], *(os.path.dirname(path) for path in paths if not path.startswith("/dev/"))]


def label_value(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text)[:63].strip("-_.")


def _task(
    request: BatchRequest, where: Submission, name: str, replicas: int, container: JSON, outputs: Sequence[str] = ()
) -> JSON:
    pod: JSON = {"restartPolicy": "Never", "containers": [container]}
    if request.limit is not None:
        pod["activeDeadlineSeconds"] = max(1, int(request.limit.total_seconds()))
    affinity = required_nodes(request.settings)
    if affinity:
        pod["affinity"] = affinity
    if where.run_as is not None:
        pod["securityContext"] = where.run_as
    with_folders(pod, where.folders, list(dict.fromkeys(outputs)))
    return {"name": name, "replicas": replicas, "template": {"spec": pod}}


def _container(request: BatchRequest, where: Submission, name: str, program: str, arguments: list[str]) -> JSON:
    settings = request.settings
    image = settings.get("image") or settings.get("container-image") or where.default_image
    amounts = {"cpu": str(request.cpus_per_node)}
    amounts |= {"memory": f"{request.memory}Ki"} if request.memory else {}
    amounts |= {GPU: str(request.gpus)} if request.gpus else {}
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/bin/sh", "-c", literal(program), "vsub", *map(literal, arguments)],
        "resources": {"requests": amounts, "limits": amounts},
    }


def _environment(variables: Mapping[str, str]) -> list[JSON]:
    return [{"name": name, "value": literal(value)} for name, value in variables.items()]


def required_nodes(settings: Mapping[str, str]) -> JSON:
    """--nodelist, --exclude and --constraint as conditions on nodes' labels."""
    common: list[JSON] = []
    if "nodelist" in settings:
        common.append(_hosts(settings["nodelist"], "In"))
    if "exclude" in settings:
        common.append(_hosts(settings["exclude"], "NotIn"))
    wanted = settings.get("constraint", "")
    features = [_feature(each) for each in re.split(r"[&|]", wanted)] if wanted else []
    if "|" in wanted:
        terms = [[*common, each] for each in features]
    else:
        terms = [[*common, *features]]
    return requiring_nodes(terms)


def _hosts(text: str, operator: str) -> JSON:
    return {"key": "kubernetes.io/hostname", "operator": operator, "values": expand_hosts(text)}


def _feature(text: str) -> JSON:
    key, equals, value = text.partition("=")
    if equals:
        return {"key": key, "operator": "In", "values": [value]}
    return {"key": key, "operator": "Exists"}


# -- environment and files --------------------------------------------------------------------------------------------
def exported(option: str, environment: Mapping[str, str]) -> tuple[dict[str, str], list[str]]:
    """The variables that --export names, and those left out because they look like secrets."""
    variables: dict[str, str] = {}
    left_out: list[str] = []
    names = [each for each in option.split(",") if each]
    if "ALL" in names:
        for name, value in environment.items():
            if not VARIABLE_NAME.fullmatch(name) or NOT_EXPORTED.fullmatch(name):
                continue
            if SECRET_WORDS.search(name):
                left_out.append(name)
            else:
                variables[name] = value
    for each in names:
        name, equals, value = each.partition("=")
        if equals:
            variables[name] = value
        elif name not in ("ALL", "NONE", "NIL") and name in environment:
            variables[name] = environment[name]
    size = sum(len(name) + len(value) + 2 for name, value in variables.items())
    if size > MAX_EXPORTED_BYTES:
        raise OptionRefused(
            f"--export={option}: the environment has {size} bytes, at most {MAX_EXPORTED_BYTES} can be taken along; "
            "name the variables that the job needs, or use --export=NONE"
        )
    return variables, [name for name in left_out if name not in variables]


def slurm_variables(
    request: BatchRequest, where: Submission, name: str, *, number: int, array_number: int, index: int | None
) -> dict[str, str]:
    hosts = ",".join(host_names(name, request.nodes))
    per_node = _per_node(request)
    found = {
        "SLURM_JOB_ID": number, "SLURM_JOBID": number, "SLURM_JOB_NAME": request.name, "SLURM_NTASKS": request.tasks,
        "SLURM_NPROCS": request.tasks, "SLURM_JOB_NUM_NODES": request.nodes, "SLURM_NNODES": request.nodes,
        "SLURM_JOB_NODELIST": hosts, "SLURM_NODELIST": hosts, "SLURM_NODEID": 0, "SLURM_PROCID": 0, "SLURM_LOCALID": 0,
        "SLURM_GTIDS": 0, "SLURM_TASKS_PER_NODE": per_node, "SLURM_CPUS_ON_NODE": request.cpus_per_node,
        "SLURM_JOB_CPUS_PER_NODE": f"{request.cpus_per_node}{f'(x{request.nodes})' if request.nodes > 1 else ''}",
        "SLURM_SUBMIT_DIR": where.directory, "SLURM_SUBMIT_HOST": where.host, "SLURM_JOB_PARTITION": request.queue,
        "SLURM_JOB_USER": where.user, "SLURM_CLUSTER_NAME": "volcano",
        "SLURM_EXPORT_ENV": request.settings.get("export", "ALL"),
    }  # fmt: skip
    given = {"cpus-per-task": "SLURM_CPUS_PER_TASK", "mem-per-cpu": "SLURM_MEM_PER_CPU"}
    given |= {"ntasks-per-node": "SLURM_NTASKS_PER_NODE", "account": "SLURM_JOB_ACCOUNT", "gpus": "SLURM_GPUS"}
    found |= {variable: request.settings[option] for option, variable in given.items() if option in request.settings}
    if "mem-per-cpu" in request.settings:
        found["SLURM_MEM_PER_CPU"] = parse_memory(request.settings["mem-per-cpu"]) // 1024
    elif request.memory:
        found["SLURM_MEM_PER_NODE"] = request.memory // 1024
    if request.gpus:
        found |= {"SLURM_GPUS_ON_NODE": request.gpus, "SLURM_JOB_GPUS": ",".join(map(str, range(request.gpus)))}
    if index is not None and request.array is not None:
        indexes = request.array.indexes
        found |= {
            "SLURM_ARRAY_JOB_ID": array_number, "SLURM_ARRAY_TASK_ID": index, "SLURM_ARRAY_TASK_COUNT": len(indexes),
            "SLURM_ARRAY_TASK_MIN": indexes[0], "SLURM_ARRAY_TASK_MAX": indexes[-1],
            "SLURM_ARRAY_TASK_STEP": indexes[1] - indexes[0] if len(indexes) > 1 else 1,
        }  # fmt: skip
    return {variable: str(value) for variable, value in found.items()}


def _per_node(request: BatchRequest) -> str:
    """`2(x3),1`: how many tasks each node has."""
    most = request.tasks_per_node
    counts = [min(most, request.tasks - most * node) for node in range(request.nodes)]
    counts = [max(0, count) for count in counts]
    runs: list[list[int]] = []
    for count in counts:
        if runs and runs[-1][0] == count:
            runs[-1].append(count)
        else:
            runs.append([count])
    return ",".join(f"{run[0]}(x{len(run)})" if len(run) > 1 else str(run[0]) for run in runs)


def batch_files(request: BatchRequest, facts: Mapping[str, str], where: Submission, host: str) -> dict[str, str]:
    is_array = "SLURM_ARRAY_JOB_ID" in facts
    values = {
        "j": facts["SLURM_JOB_ID"], "A": facts.get("SLURM_ARRAY_JOB_ID", facts["SLURM_JOB_ID"]),
        "a": facts.get("SLURM_ARRAY_TASK_ID", "4294967294"), "J": f"{facts['SLURM_JOB_ID']}.batch", "x": request.name,
        "u": where.user, "N": host, "n": "0", "t": "0", "s": "batch", "b": facts.get("SLURM_ARRAY_TASK_ID", "0"),
    }  # fmt: skip
    settings = request.settings
    directory = os.path.normpath(os.path.join(where.directory, settings.get("chdir", "")))

    def path(option: str, default: str) -> str:
        text = fill_pattern(settings.get(option, default), values)
        return text if text.startswith("/") or not text else f"{directory}/{text}"

    return {
        "VSUB_CHDIR": directory,
        "VSUB_OUTPUT": path("output", "slurm-%A_%a.out" if is_array else "slurm-%j.out"),
        "VSUB_ERROR": path("error", ""),
        "VSUB_INPUT": path("input", "/dev/null"),
        "VSUB_APPEND": "1" if settings.get("open-mode") == "append" else "",
    }
