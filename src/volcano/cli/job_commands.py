"""The commands of `vcctl job` and `vcctl pod`, as values."""

from __future__ import annotations

from typing import Final

from volcano.cli.command_line import BOOL, CLOSER, DURATION, INT, CommandSpec, Flag
from volcano.cli.common_flags import (
    CONNECTION,
    DRY_RUN,
    EVERYWHERE,
    LABELS,
    LISTING,
    NAME,
    NAMESPACE,
    ONE,
    SEVERAL,
    START,
)
from volcano.cli.history_commands import JOB_HISTORY

RESOURCES: Final = "cpu=1000m,memory=100Mi"
RUN_FLAGS: Final = (
    Flag("image", "i", default="busybox", help="the image of the container"),
    Flag("min", "m", default=1, kind=INT, help="how many pods must be able to start together"),
    Flag("replicas", "r", default=1, kind=INT, help="how many pods the job has"),
    Flag("requests", "R", default=RESOURCES, help="what each pod requests"),
    Flag("limits", "L", default=RESOURCES, help="what each pod may use at most"),
    Flag("queue", "q", help="the queue of the job; otherwise default"),
    Flag("scheduler", "S", default="volcano", help="the scheduler of the job"),
    Flag("time", "t", help="how long it will run at most, such as 1h30m, or as Slurm writes it: 90, 1:30:00, 2-12"),
)
IN_POD: Final = (
    Flag("task", help="a pod of this task"),
    Flag("pod", help="this pod; otherwise the first that runs"),
    Flag("container", "c", help="this container; otherwise the first"),
)
TERMINAL: Final = Flag("tty", "t", kind=BOOL, default=False, help="with a terminal of its own")
INPUT: Final = Flag("stdin", "i", kind=BOOL, default=False, help="pass on what is typed")
EXPLAINING: Final = (
    Flag("output", "o", help="json or yaml"),
    Flag("apply", kind=INT, default=0, help="make this one of the proposed changes, after asking"),
    Flag(
        "scheduler",
        "S",
        help="address of the scheduler; otherwise it is asked through the API server",
    ),
    Flag("yes", "y", kind=BOOL, default=False, help="with --apply: do not ask"),
)
SELECTED: Final = (*CONNECTION, NAMESPACE, NAME, LABELS)

JOB: Final = CommandSpec(
    "job",
    "Submit jobs, list them, look at them and end them",
    examples=(
        "vcctl job run -f examples/gang.yaml",
        "vcctl job list",
        "vcctl job view gang",
        "vcctl job explain gang",
        "vcctl job delete gang",
    ),
    children=(
        CommandSpec(
            "run",
            "Submit a job that a file or the flags describe",
            (*CONNECTION, NAMESPACE, NAME, *RUN_FLAGS, Flag("filename", "f", help="the YAML file of the job"), DRY_RUN),
            "volcano.cli.job:run",
            arguments=ONE,
            examples=(
                "vcctl job run -f examples/gang.yaml",
                "vcctl job run -f examples/gang.yaml --dry-run=schedule",
                "vcctl job run hello --image busybox --replicas 3 --min 3",
                "vcctl job run short --time 10m",
            ),
        ),
        CommandSpec(
            "list",
            "List jobs with their phases and pods",
            (
                *CONNECTION,
                NAMESPACE,
                EVERYWHERE,
                Flag("queue", "q", help="only jobs of this queue"),
                Flag("scheduler", "S", help="only jobs of this scheduler"),
                Flag("selector", help="only jobs with this text in their names"),
                LABELS,
                *LISTING,
                START,
                Flag("priority", kind=BOOL, default=False, help="show what the places of waiting jobs are made of"),
            ),
            "volcano.cli.job:list_jobs",
            examples=(
                "vcctl job list",
                "vcctl job list --start",
                "vcctl job list --all-namespaces -o wide",
                "vcctl job list -q default",
            ),
        ),
        CommandSpec(
            "view",
            "Show everything about a job, with its events",
            SELECTED,
            "volcano.cli.job_view:view",
            arguments=SEVERAL,
            examples=("vcctl job view gang",),
        ),
        CommandSpec(
            "logs",
            "Show what the pods of a job print",
            (
                *CONNECTION,
                NAMESPACE,
                NAME,
                Flag("follow", "f", kind=BOOL, default=False, help="go on until the job ends"),
                Flag("task", help="only the pods of this task"),
                Flag("pod", help="only this pod"),
                Flag("since", kind=DURATION, help="only lines of the last time, such as 5m"),
                Flag("grep", help="only lines that match this regular expression"),
            ),
            "volcano.cli.job_logs:logs",
            arguments=ONE,
            examples=("vcctl job logs gang", "vcctl job logs gang -f --task worker --grep error"),
        ),
        CommandSpec(
            "wait",
            "Wait until jobs are in a phase; the exit code is 1 when they will not be",
            (
                *SELECTED,
                Flag("for", default="Completed", help="the phase, or Ended for any in which it makes no progress"),
                Flag("timeout", kind=DURATION, default="5m", help="how long to wait"),
            ),
            "volcano.cli.job_wait:wait",
            arguments=SEVERAL,
            examples=("vcctl job wait gang --for Completed --timeout 10m",),
        ),
        CommandSpec(
            "suspend",
            "End the pods of a job and keep it, to be resumed",
            SELECTED,
            "volcano.cli.job:suspend",
            arguments=SEVERAL,
            examples=("vcctl job suspend gang",),
        ),
        CommandSpec(
            "resume",
            "Start a suspended job again",
            SELECTED,
            "volcano.cli.job:resume",
            arguments=SEVERAL,
            examples=("vcctl job resume gang",),
        ),
        CommandSpec(
            "delete",
            "Delete jobs and their pods",
            SELECTED,
            "volcano.cli.job:delete",
            arguments=SEVERAL,
            examples=("vcctl job delete gang", "vcctl job delete -l team=a"),
        ),
        CommandSpec(
            "exec",
            "Run a command in a pod of a job",
            (*CONNECTION, NAMESPACE, *IN_POD, TERMINAL, INPUT),
            "volcano.cli.job_exec:exec_in_job",
            arguments="NAME -- COMMAND…",
            section=CLOSER,
            examples=("vcctl job exec gang -- hostname", "vcctl job exec gang -it --task worker -- bash"),
        ),
        CommandSpec(
            "shell",
            "Open a shell in a pod of a job",
            (*CONNECTION, NAMESPACE, *IN_POD),
            "volcano.cli.job_exec:shell",
            arguments="NAME",
            section=CLOSER,
            examples=("vcctl job shell gang",),
        ),
        CommandSpec(
            "attach",
            "Show what a pod of a job goes on printing, and type to it with -i",
            (*CONNECTION, NAMESPACE, *IN_POD, TERMINAL, INPUT),
            "volcano.cli.job_exec:attach",
            arguments="NAME",
            section=CLOSER,
            examples=("vcctl job attach gang",),
        ),
        JOB_HISTORY,
        CommandSpec(
            "eta",
            "Say when a waiting job is expected to start, and after which others",
            (*CONNECTION, NAMESPACE, NAME, Flag("output", "o", help="json or yaml")),
            "volcano.cli.expected_starts:eta",
            arguments=ONE,
            section=CLOSER,
            examples=("vcctl job eta gang",),
        ),
        CommandSpec(
            "explain",
            "Say why a job waits, and whether waiting will help",
            (*CONNECTION, NAMESPACE, NAME, *EXPLAINING),
            "volcano.cli.explain:explain_job",
            arguments=ONE,
            section=CLOSER,
            examples=("vcctl job explain gang",),
        ),
    ),
)

EXPLAIN: Final = CommandSpec(
    "explain",
    "Say why anything waits or fails, whether waiting will help, and which change lets it run",
    (*CONNECTION, Flag("namespace", "n", default="default", help="the namespace of what is explained"), *EXPLAINING),
    "volcano.cli.explain:explain",
    arguments="KIND/NAME…",
    section=CLOSER,
    examples=("vcctl explain vcjob/gang", "vcctl explain queue/default", "vcctl explain vcjob/gang --apply 1 --yes"),
)

NODE: Final = CommandSpec(
    "node",
    "See what nodes have and what is free",
    section=CLOSER,
    examples=("vcctl node list",),
    children=(
        CommandSpec(
            "list",
            "List nodes with their state, free and allocated CPUs, memory and GPUs",
            (*CONNECTION, LABELS),
            "volcano.cli.node:list_nodes",
            examples=("vcctl node list",),
        ),
    ),
)

POD: Final = CommandSpec(
    "pod",
    "List the pods of jobs and queues",
    section=CLOSER,
    examples=("vcctl pod list -j gang",),
    children=(
        CommandSpec(
            "list",
            "List pods with their phases and nodes",
            (
                *CONNECTION,
                Flag("queue", "q", help="only pods of this queue"),
                Flag("job", "j", help="only pods of this job"),
                Flag("namespace", "n", default="default", help="the namespace of the pods"),
                Flag("all-namespaces", kind=BOOL, default=False, help="list pods in all namespaces"),
                *LISTING,
            ),
            "volcano.cli.pods:list_pods",
            examples=("vcctl pod list -j gang", "vcctl pod list --all-namespaces"),
        ),
    ),
)
