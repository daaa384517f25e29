"""The programs as values: vcctl (also `kubectl vc`) and the v* family, which Slurm's users know by other names."""

from __future__ import annotations

import os
import sys
from typing import Final, NoReturn

from volcano.cli.command_line import ADMINISTRATION, BOOL, CLOSER, DURATION, CommandSpec, Flag, main
from volcano.cli.common_flags import CONNECTION, EVERYWHERE, LABELS, ONE, QUEUE_NAME, SEVERAL, START
from volcano.cli.flow_commands import flow_group
from volcano.cli.history_commands import USAGE, VACCT
from volcano.cli.job_commands import EXPLAIN, JOB, NODE, POD, RUN_FLAGS
from volcano.cli.queue_commands import QUEUE
from volcano.cli.reservation_commands import RESERVATION

VCCTL: Final = CommandSpec(
    "vcctl",
    "Jobs, queues and flows of Volcano",
    examples=(
        "vcctl job run -f examples/gang.yaml",
        "vcctl job list",
        "vcctl job explain gang",
        "vcctl queue tree",
        "vcctl top",
    ),
    children=(
        JOB,
        QUEUE,
        flow_group("jobflow", everywhere=True),
        flow_group("jobtemplate", everywhere=False),
        POD,
        NODE,
        EXPLAIN,
        CommandSpec(
            "scheduler",
            "See what the scheduler does and how it is configured",
            section=CLOSER,
            examples=("vcctl scheduler status",),
            children=(
                CommandSpec(
                    "status",
                    "Show the configuration in force, or why the newest was refused",
                    CONNECTION,
                    "volcano.cli.scheduler_status:status",
                    examples=("vcctl scheduler status",),
                ),
            ),
        ),
        CommandSpec(
            "top",
            "Show jobs, queues and nodes, live in the terminal with keys, once elsewhere",
            (
                *CONNECTION,
                Flag("once", kind=BOOL, default=False, help="print the tables once, also on a terminal"),
                Flag("sort", help="the column to sort by, such as cpu, memory, age or name"),
                Flag("interval", kind=DURATION, default="2s", help="time between two looks, at least 500ms"),
            ),
            "volcano.cli.top.top_command:top",
            arguments="[jobs|queues|nodes]",
            section=CLOSER,
            examples=("vcctl top", "vcctl top nodes --once", "vcctl top jobs --sort age --once"),
        ),
        USAGE,
        RESERVATION,
        CommandSpec(
            "completion",
            "Print the completion script of all programs for bash, zsh or fish",
            run="volcano.cli.completion:completion",
            arguments="SHELL",
            section=ADMINISTRATION,
            examples=("source <(vcctl completion bash)", "vcctl completion zsh", "vcctl completion fish"),
        ),
        CommandSpec(
            "version", "Print the version", run="volcano.cli.version:version", section=ADMINISTRATION,
            examples=("vcctl version",),
        ),
        CommandSpec("__complete", run="volcano.cli.completion:complete", arguments="PROGRAM [WORD…]", hidden=True),
    ),
)  # fmt: skip

ALIAS_NAMESPACE: Final = Flag("namespace", "N", default="default", help="the namespace of the job")
ALIAS_NAME: Final = Flag("name", "n", help="the name of the job; names may also be given as arguments")


OWN_JOBS: Final = (
    Flag("me", kind=BOOL, default=False, help="only jobs that this user submitted with vsub or vrun"),
    Flag("user", "u", help="only jobs of these users"),
    Flag("states", "t", help="only jobs in these states: PENDING,RUNNING or PD,R; all for all"),
    Flag("partition", "p", help="only jobs of these queues"),
)


def _from_environment(flag: Flag, variable: str) -> Flag:
    import dataclasses

    return dataclasses.replace(flag, default=os.environ.get(variable) or flag.default)


SCRIPT_FLAGS: Final = (
    Flag("array", "a", help="one job for each index, such as 1-100%10 for at most ten at a time"),
    Flag("chdir", "D", help="the working directory"),
    Flag("constraint", "C", help="labels that nodes must have"),
    Flag("cpus-per-task", "c", help="CPUs of each task"),
    Flag("dependency", "d", help="start after other jobs: afterok:NAME:NAME, afterany, afternotok, after, singleton"),
    Flag("error", "e", help="the file of error messages; otherwise they are in the output"),
    Flag("export", help="variables to take along: ALL, NONE, or NAME,NAME=VALUE"),
    Flag("gpus", "G", help="GPUs of the whole job; also --gpus-per-node, --gpus-per-task"),
    Flag("gres", help="GPUs of each node, such as gpu:2"),
    Flag("input", "i", help="the file that the script reads"),
    Flag("job-name", "J", help="the name of the job; otherwise the script's"),
    Flag("mem", help="memory of each node, such as 4G; also --mem-per-cpu, --mem-per-gpu"),
    Flag("nodes", "N", help="how many nodes, each of which is a pod"),
    Flag("ntasks", "n", help="how many tasks; also --ntasks-per-node"),
    Flag("output", "o", help="the output file, such as %x-%j.out; otherwise slurm-%j.out"),
    Flag("parsable", kind=BOOL, default=False, help="print only the number of the job"),
    Flag("partition", "p", help="the queue; also --queue"),
    Flag("requeue", kind=BOOL, default=False, help="restart the job when its node is lost; --no-requeue: never"),
    Flag("time", "t", help="time limit, such as 90, 1:30:00 or 2-12:00:00"),
    Flag("wait", "W", kind=BOOL, default=False, help="wait until the job has ended"),
    Flag("wrap", help="commands for a shell, in place of a script"),
)


def _vsub() -> CommandSpec:
    variables = {"image": "VOLCANO_DEFAULT_IMAGE", "scheduler": "VOLCANO_SCHEDULER_NAME"}
    flags = tuple(_from_environment(flag, variables.get(flag.name, "")) for flag in RUN_FLAGS)
    return CommandSpec(
        "vsub",
        "submit a batch script as sbatch does (vsub script.sh), or a job described by flags",
        (
            *CONNECTION,
            ALIAS_NAME,
            _from_environment(ALIAS_NAMESPACE, "VOLCANO_DEFAULT_JOB_NAMESPACE"),
            *flags,
            Flag("command", "c", help="the command of the container"),
            Flag("test-only", kind=BOOL, default=False, help="only say what would happen"),
        ),
        "volcano.cli.aliases:submit",
        arguments="[SCRIPT [ARGUMENT…]]",
        script_flags=SCRIPT_FLAGS,
        examples=(
            "vsub examples/slurm/hello.sh",
            "vsub --array 1-4%2 --wrap 'echo $SLURM_ARRAY_TASK_ID'",
            'vsub -n hello -r 2 -t 10m -c "echo hello"',
            'vsub -n hello -c "echo hello" --test-only',
        ),
    )


VRUN: Final = CommandSpec(
    "vrun",
    "run a command in pods and show its output here, as srun does; sbatch's options are understood",
    (
        *CONNECTION,
        Flag("ntasks", "n", default="1", help="how many pods"),
        Flag("cpus-per-task", "c", default="1", help="CPUs of each"),
        Flag("mem", help="memory of each, such as 4G"),
        Flag("gres", help="GPUs of each, such as gpu:1"),
        Flag("time", "t", help="time limit, such as 1:30:00"),
        Flag("partition", "p", help="the queue"),
        Flag("label", "l", kind=BOOL, default=False, help="the task's number before each line"),
        Flag("pty", kind=BOOL, default=False, help="with this terminal, for a shell"),
    ),
    arguments="COMMAND [ARGUMENT…]",
    examples=("vrun -n 4 hostname", "vrun --pty bash"),
)

ALIASES: Final = {
    "vjobs": CommandSpec(
        "vjobs",
        "show one job, or the jobs of a namespace",
        (
            *CONNECTION,
            ALIAS_NAME,
            ALIAS_NAMESPACE,
            Flag("scheduler", "S", help="only jobs of this scheduler"),
            EVERYWHERE,
            Flag("selector", help="only jobs with this text in their names"),
            START,
            *OWN_JOBS,
            Flag("jobs", "j", help="only these jobs, by number or name: 12,13_4"),
            Flag("format", "o", help="squeue's format, such as '%.18i %.9P %j %t %M %R'"),
            Flag("long", "l", kind=BOOL, default=False, help="with time limits and long states"),
            Flag("array", "r", kind=BOOL, default=False, help="each job of an array on a line of its own"),
            Flag("noheader", kind=BOOL, default=False, help="without the heading"),
            Flag("squeue", kind=BOOL, default=False, help="squeue's columns, as on a terminal, also when piped"),
        ),
        "volcano.cli.aliases:vjobs",
        arguments=ONE,
        examples=(
            "vjobs",
            "vjobs gang",
            "vjobs --start",
            "vjobs --me",
            "vjobs --format '%i %j %t %R'",
            "vjobs --states all",
        ),
    ),
    "vinfo": CommandSpec(
        "vinfo",
        "show queues and the state of nodes, as sinfo does",
        (
            *CONNECTION,
            Flag("partition", "p", help="only these queues"),
            Flag("node", "N", kind=BOOL, default=False, help="one line for each node"),
        ),
        "volcano.cli.slurm.node_table:info",
        examples=("vinfo", "vinfo -N"),
    ),
    "vqueues": CommandSpec(
        "vqueues",
        "show one queue, or all queues",
        (*CONNECTION, QUEUE_NAME),
        "volcano.cli.queue:vqueues",
        arguments=ONE,
        examples=("vqueues",),
    ),
    "vcancel": CommandSpec(
        "vcancel",
        "cancel jobs by name, pattern, number or part of an array",
        (*CONNECTION, ALIAS_NAME, ALIAS_NAMESPACE, LABELS, *OWN_JOBS),
        "volcano.cli.aliases:cancel",
        arguments=SEVERAL,
        examples=("vcancel gang other", "vcancel 'gang-*'", "vcancel --me --states PENDING"),
    ),
    "vsuspend": CommandSpec(
        "vsuspend",
        "suspend a running or pending job",
        (*CONNECTION, ALIAS_NAME, ALIAS_NAMESPACE, LABELS),
        "volcano.cli.job:suspend",
        arguments=SEVERAL,
        examples=("vsuspend gang",),
    ),
    "vacct": VACCT,
    "vresume": CommandSpec(
        "vresume",
        "resume an aborted job",
        (*CONNECTION, ALIAS_NAME, ALIAS_NAMESPACE, LABELS),
        "volcano.cli.job:resume",
        arguments=SEVERAL,
        examples=("vresume gang",),
    ),
}


def programs() -> tuple[CommandSpec, ...]:
    """All of them, for manual pages."""
    return (VCCTL, _vsub(), VRUN, *ALIASES.values())


def run_program(name: str, argv: list[str] | None = None) -> int:
    """The exit code of a program called with these words."""
    if name in ("vcctl", "kubectl-vc"):
        return main(VCCTL, argv)
    words = sys.argv[1:] if argv is None else argv
    if name == "vsub":
        from volcano.cli.slurm.batch_submit import is_batch, submit_batch

        if is_batch(words):
            return submit_batch(words)
    if name == "vrun" and words and not {"-h", "--help"} & {words[0]}:
        from volcano.cli.slurm.run_step import run_step

        return run_step(words)
    return main({"vsub": _vsub(), "vrun": VRUN}.get(name) or ALIASES[name], argv)


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


def vrun() -> NoReturn:
    _end("vrun")


def vinfo() -> NoReturn:
    _end("vinfo")


def vcancel() -> NoReturn:
    _end("vcancel")


def vsuspend() -> NoReturn:
    _end("vsuspend")


def vacct() -> NoReturn:
    _end("vacct")


def vresume() -> NoReturn:
    _end("vresume")
