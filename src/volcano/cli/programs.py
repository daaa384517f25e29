"""The programs: vcctl (also as `kubectl vc`), vsub, vjobs, vqueues, vcancel, vsuspend, vresume, as values."""

from __future__ import annotations

import os
import sys
from typing import Final, NoReturn

from volcano.cli.command_line import BOOL, INT, INT32, CommandSpec, Flag, main

CONNECTION: Final = (
    Flag("kubeconfig", "k", help="(optional) absolute path to the kubeconfig file"),
    Flag("master", "s", help="the address of apiserver"),
)
NAMESPACE: Final = Flag("namespace", "n", default="default", help="the namespace of job")
NAME: Final = Flag("name", "N", help="the name of job")
EVERYWHERE: Final = Flag("all-namespaces", kind=BOOL, default=False, help="list jobs in all namespaces")
BEYOND: Final = (
    Flag("output", "o", help="json, yaml, wide or name", hidden=True),
    Flag("watch", "w", kind=BOOL, default=False, help="go on showing changes", hidden=True),
)
"""What lists can do beyond Volcano's own; not on the screens that must not change."""
DRY_RUN: Final = Flag("dry-run", help="schedule: only say what would happen", hidden=True)
RESOURCES: Final = "cpu=1000m,memory=100Mi"

RUN_FLAGS: Final = (
    Flag("image", "i", default="busybox", help="the container image of job"),
    Flag("min", "m", default=1, kind=INT, help="the minimal available tasks of job"),
    Flag("replicas", "r", default=1, kind=INT, help="the total tasks of job"),
    Flag("requests", "R", default=RESOURCES, help="the resource request of the task"),
    Flag("limits", "L", default=RESOURCES, help="the resource limit of the task"),
    Flag("scheduler", "S", default="volcano", help="the scheduler for this job"),
)

JOB: Final = CommandSpec(
    "job",
    "vcctl command line operation job",
    children=(
        CommandSpec(
            "run",
            "run job by parameters from the command line",
            (*CONNECTION, NAMESPACE, NAME, *RUN_FLAGS, Flag("filename", "f", help="the yaml file of job"), DRY_RUN),
            "volcano.cli.job:run",
        ),
        CommandSpec(
            "list",
            "list job information",
            (
                *CONNECTION,
                NAMESPACE,
                EVERYWHERE,
                Flag("queue", "q", help="list job with specified queue name"),
                Flag("scheduler", "S", help="list job with specified scheduler name"),
                Flag("selector", help="fuzzy matching jobName"),
                *BEYOND,
            ),
            "volcano.cli.job:list_jobs",
        ),
        CommandSpec("view", "show job information", (*CONNECTION, NAMESPACE, NAME), "volcano.cli.job_view:view"),
        CommandSpec("suspend", "abort a job", (*CONNECTION, NAMESPACE, NAME), "volcano.cli.job:suspend"),
        CommandSpec("resume", "resume a job", (*CONNECTION, NAMESPACE, NAME), "volcano.cli.job:resume"),
        CommandSpec("delete", "delete a job", (*CONNECTION, NAMESPACE, NAME), "volcano.cli.job:delete"),
        CommandSpec(
            "explain",
            "say why a job waits, and whether waiting will help",
            (*CONNECTION, NAMESPACE, NAME, Flag("output", "o", help="json or yaml")),
            "volcano.cli.explain:explain_job",
            hidden=True,
            more_help="Example:\n  vcctl job explain my-job",
        ),
    ),
)

QUEUE_NAME: Final = Flag("name", "n", help="the name of queue")
QUEUE: Final = CommandSpec(
    "queue",
    "Queue Operations",
    children=(
        CommandSpec(
            "create",
            "create a queue",
            (
                *CONNECTION,
                Flag("name", "n", default="test", help="the name of queue"),
                Flag("weight", "w", default=1, kind=INT32, help="the weight of the queue"),
                Flag("state", "S", default="Open", help="the state of queue"),
            ),
            "volcano.cli.queue:create",
        ),
        CommandSpec("delete", "delete a queue", (*CONNECTION, QUEUE_NAME), "volcano.cli.queue:delete"),
        CommandSpec(
            "operate",
            "operate a queue",
            (
                *CONNECTION,
                QUEUE_NAME,
                Flag("weight", "w", default=0, kind=INT32, help="the weight of the queue"),
                Flag("action", "a", help="operate action to queue, valid actions are open, close, update"),
            ),
            "volcano.cli.queue:operate",
        ),
        CommandSpec("list", "list all the queues", (*CONNECTION, *BEYOND), "volcano.cli.queue:list_queues"),
        CommandSpec("get", "get a queue", (*CONNECTION, QUEUE_NAME), "volcano.cli.queue:get"),
        CommandSpec("tree", "show the hierarchy of queues", CONNECTION, "volcano.cli.queue_tree:tree", hidden=True),
    ),
)


def _flow_group(name: str, *, everywhere: bool) -> CommandSpec:
    namespace = Flag("namespace", "n", default="default", help=f"the namespace of {name}")
    named = Flag("name", "N", help=f"the name of {name}")
    file = Flag("file", "f", help=f"the path to the YAML file containing the {name}")
    listing = (Flag("all-namespaces", kind=BOOL, default=False, help=f"list {name}s in all namespaces"),)
    form = Flag("format", "o", default="yaml", help="the format of the output, yaml or json")
    drawn = CommandSpec(
        "view", f"draw a {name} with the state of its steps", (*CONNECTION, named, namespace),
        "volcano.cli.flow_view:view", hidden=True,
    )  # fmt: skip
    return CommandSpec(
        name,
        f"vcctl command line operation {name}",
        children=(
            *((drawn,) if name == "jobflow" else ()),
            CommandSpec("create", f"create a {name}", (*CONNECTION, file), "volcano.cli.flows:create"),
            CommandSpec(
                "delete", f"delete a {name}", (*CONNECTION, named, namespace, file), "volcano.cli.flows:delete"
            ),
            CommandSpec("get", f"get a {name}", (*CONNECTION, named, namespace), "volcano.cli.flows:get"),
            CommandSpec(
                "list",
                f"list {name}s",
                (*CONNECTION, namespace, *(listing if everywhere else ()), *BEYOND),
                "volcano.cli.flows:list_objects",
            ),
            CommandSpec(
                "describe", f"describe a {name}", (*CONNECTION, named, namespace, form), "volcano.cli.flows:describe"
            ),
        ),
    )


POD: Final = CommandSpec(
    "pod",
    "vcctl command line operation pod",
    children=(
        CommandSpec(
            "list",
            "list pod information",
            (
                *CONNECTION,
                Flag("queue", "q", help="list pod with specified queue name"),
                Flag("job", "j", help="list pod with specified job name"),
                Flag("namespace", "n", default="default", help="the namespace of job"),
                Flag("all-namespaces", kind=BOOL, default=False, help="list pods in all namespaces"),
                *BEYOND,
            ),
            "volcano.cli.pods:list_pods",
        ),
    ),
)

VCCTL: Final = CommandSpec(
    "vcctl",
    children=(
        JOB,
        QUEUE,
        _flow_group("jobflow", everywhere=True),
        _flow_group("jobtemplate", everywhere=False),
        POD,
        CommandSpec("version", "Print the version information", run="volcano.cli.version:version"),
        CommandSpec("top", "show queues, jobs and nodes, live", CONNECTION, "volcano.cli.top:top", hidden=True),
        CommandSpec(
            "completion",
            "print a completion script for bash, zsh or fish",
            run="volcano.cli.completion:completion",
            hidden=True,
            more_help="Example:\n  source <(vcctl completion bash)",
        ),
        CommandSpec("__complete", run="volcano.cli.completion:complete", hidden=True),
        CommandSpec("beyond", "what goes beyond Volcano's own vcctl", run="volcano.cli.beyond:beyond", hidden=True),
    ),
)

ALIAS_NAMESPACE: Final = Flag("namespace", "N", default="default", help="the namespace of job")
ALIAS_NAME: Final = Flag("name", "n", help="the name of job")


def _from_environment(flag: Flag, variable: str) -> Flag:
    import dataclasses

    return dataclasses.replace(flag, default=os.environ.get(variable) or flag.default)


def _vsub() -> CommandSpec:
    variables = {"image": "VOLCANO_DEFAULT_IMAGE", "scheduler": "VOLCANO_SCHEDULER_NAME"}
    flags = tuple(_from_environment(flag, variables.get(flag.name, "")) for flag in RUN_FLAGS)
    return CommandSpec(
        "vsub",
        "submit a job described by flags; manifests are not accepted",
        (
            *CONNECTION,
            ALIAS_NAME,
            _from_environment(ALIAS_NAMESPACE, "VOLCANO_DEFAULT_JOB_NAMESPACE"),
            *flags,
            Flag("command", "c", help="the command of the container"),
            Flag("test-only", kind=BOOL, default=False, help="only say what would happen", hidden=True),
        ),
        "volcano.cli.aliases:submit",
    )


ALIASES: Final = {
    "vjobs": CommandSpec(
        "vjobs",
        "show one job, or the jobs of a namespace",
        (
            *CONNECTION,
            ALIAS_NAME,
            ALIAS_NAMESPACE,
            Flag("scheduler", "S", help="list job with specified scheduler name"),
            EVERYWHERE,
            Flag("selector", help="fuzzy matching jobName"),
        ),
        "volcano.cli.aliases:vjobs",
    ),
    "vqueues": CommandSpec(
        "vqueues",
        "show one queue, or all queues",
        (*CONNECTION, QUEUE_NAME),
        "volcano.cli.queue:vqueues",
    ),
    "vcancel": CommandSpec(
        "vcancel",
        "cancel a running, pending or aborted job",
        (*CONNECTION, ALIAS_NAME, ALIAS_NAMESPACE),
        "volcano.cli.aliases:cancel",
    ),
    "vsuspend": CommandSpec(
        "vsuspend",
        "suspend a running or pending job",
        (*CONNECTION, ALIAS_NAME, ALIAS_NAMESPACE),
        "volcano.cli.job:suspend",
    ),
    "vresume": CommandSpec(
        "vresume",
        "resume an aborted job",
        (*CONNECTION, ALIAS_NAME, ALIAS_NAMESPACE),
        "volcano.cli.job:resume",
    ),
}


def run_program(name: str, argv: list[str] | None = None) -> int:
    """The exit code of a program called with these words."""
    if name in ("vcctl", "kubectl-vc"):
        return main(VCCTL, argv)
    return main(_vsub() if name == "vsub" else ALIASES[name], argv)


def _end(name: str) -> NoReturn:
    sys.exit(run_program(name))


def vcctl() -> NoReturn:
    _end("vcctl")


def vsub() -> NoReturn:
    _end("vsub")


def vjobs() -> NoReturn:
    _end("vjobs")


def vqueues() -> NoReturn:
    _end("vqueues")


def vcancel() -> NoReturn:
    _end("vcancel")


def vsuspend() -> NoReturn:
    _end("vsuspend")


def vresume() -> NoReturn:
    _end("vresume")
