"""`vsub script.sh`, `vsub --wrap "cmd; cmd"`: submit a batch script as sbatch does."""

from __future__ import annotations

import dataclasses
import os
import pwd
import re
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from volcano.api.batch import STOPPED_PHASES
from volcano.api.jobs.dependencies import DependencyKind
from volcano.api.meta import JSON
from volcano.cli.command_line import say
from volcano.cli.connection import ApiConnection, connect_to
from volcano.cli.dry_run import report
from volcano.cli.failures import Failed
from volcano.cli.formats import labels_of
from volcano.cli.resources import JOBS
from volcano.cli.slurm.batch_job import (
    JOB_NAME_LABEL,
    USER_KEY,
    BatchRequest,
    Submission,
    batch_job,
    exported,
    label_value,
    needed_folders,
    read_request,
)
from volcano.cli.slurm.directives import MAX_SCRIPT_BYTES, ScriptRefused, check_script, read_directives
from volcano.cli.slurm.job_numbers import jobs_called, take_numbers
from volcano.cli.slurm.options import (
    BY_NAME,
    BY_SHORT,
    CONNECTION_SHORTS,
    VALUE,
    GivenOption,
    OptionRefused,
    of_command_line,
    read_lines,
    sorted_out,
)
from volcano.cli.slurm.shared_folders import shared_folders
from volcano.cli.slurm.shell_functions import absent_programs
from volcano.machinery.clock import wait_blocking

POLL_SECONDS: Final = 0.5
OLD_FLAGS_WITHOUT_VALUE: Final = ("--test-only", "--help", "-h")
SHELL: Final = "#!/bin/sh\n# This script was created by vsub --wrap.\n\n"
REFUSED: Final = 1


def is_batch(words: Sequence[str]) -> bool:
    """Whether vsub is given a script or a command to wrap, and not only flags that describe a job."""
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if word.startswith("--wrap"):
            return True
        if not word.startswith("-") or word in ("-", "--"):
            return True
        if word in OLD_FLAGS_WITHOUT_VALUE or "=" in word:
            continue
        option = BY_NAME.get(word[2:]) if word.startswith("--") else ({**BY_SHORT, **CONNECTION_SHORTS}).get(word[1:2])
        has_value = len(word) > 2 and not word.startswith("--")
        if waiting and not has_value and (option is None or option.takes == VALUE):
            waiting.pop(0)
    return False


def submit_batch(words: Sequence[str]) -> int:
    """The exit code; errors on stderr with the line of the script."""
    try:
        return _submit(list(words))
    except (OptionRefused, ScriptRefused) as error:
        for line in str(error).splitlines():
            print(f"vsub: error: {line}", file=sys.stderr)
        print("vsub: the job was not submitted", file=sys.stderr)
        return REFUSED
    except Failed as error:
        print(f"vsub: error: {error}", file=sys.stderr)
        return REFUSED
    except KeyboardInterrupt:
        return 130


def _submit(words: list[str]) -> int:
    given, rest = of_command_line(words)
    options = {each.name: each for each in given}
    script, name, arguments = _script(options, rest)
    chosen, notes, request = _read(script, name, given)
    where = submission(chosen)
    hidden = exported(request.settings.get("export", "ALL"), where.environment)[1]
    if hidden:
        notes.append(f"not exported, since named like secrets: {', '.join(hidden)}; --export=ALL,NAME exports one")
    if "quiet" not in chosen:
        for note in (*notes, *request.words):
            print(f"vsub: {note}", file=sys.stderr)
    connection = connect_to(_value(options, "kubeconfig"), _value(options, "master"))
    shared = shared_folders(connection, needed_folders(request, where), _value(options, "kubeconfig"))
    for folder in shared.hidden:
        print(
            f"vsub: what the job writes in {folder} stays in its pod, except for its output, since the system's data "
            "is there; submit from a folder inside it",
            file=sys.stderr,
        )
    where = dataclasses.replace(where, folders=shared.mounted, hidden=shared.hidden, run_as=shared.run_as)
    dependency = resolve(connection, where.namespace, chosen.get("dependency"), request, where.user)
    if "test-only" in chosen:
        return report(connection, batch_job(request, script, arguments, where, number=0))
    return _create(connection, request, script, arguments, where, dependency, chosen)


def _read(script: str, name: str, given: list[GivenOption]) -> tuple[dict[str, GivenOption], list[str], BatchRequest]:
    """The options that count, words about ignored ones, and the request; OptionRefused with all that is wrong."""
    found, broken = read_directives(script)
    lines, unreadable = read_lines(found)
    chosen, notes, unsupported = sorted_out([*lines, *given])
    wrong = [*broken, *unreadable, *unsupported]
    try:
        request = read_request(chosen, name)
    except OptionRefused as error:
        request = None
        wrong += str(error).splitlines()
    if wrong or request is None:
        placed = sorted(wrong, key=_line_number)
        raise OptionRefused("\n".join(f"{name}: {line}" if _line_number(line) else line for line in placed))
    return chosen, [*notes, *absent_programs(script, os.environ)], request


def _line_number(text: str) -> int:
    """Of an error that begins with its line; 0 for one of the command line."""
    found = re.match(r"line (\d+): ", text)
    return int(found[1]) if found else 0


def _script(options: Mapping[str, GivenOption], rest: list[str]) -> tuple[str, str, list[str]]:
    """The script's text, its name, its arguments."""
    if "wrap" in options:
        if rest:
            raise OptionRefused(f"--wrap: a script may not be given too: {rest[0]}")
        return SHELL + options["wrap"].value + "\n", "wrap", []
    if not rest or rest[0] == "-":
        return (
            check_script(sys.stdin.buffer.read(MAX_SCRIPT_BYTES + 1), "the script on standard input"),
            "sbatch",
            rest[1:],
        )
    path = Path(rest[0])
    try:
        with path.open("rb") as file:
            return check_script(file.read(MAX_SCRIPT_BYTES + 1), rest[0]), path.name, rest[1:]
    except OSError as error:
        raise OptionRefused(f"{rest[0]}: {(error.strerror or str(error)).lower()}") from error


def submission(chosen: Mapping[str, GivenOption]) -> Submission:
    """The circumstances of this very call."""
    environment = os.environ
    return Submission(
        directory=os.getcwd(),
        user=user_name(),
        host=socket.gethostname(),
        environment=environment,
        default_image=environment.get("VOLCANO_DEFAULT_IMAGE") or "python:3",
        namespace=_value(chosen, "namespace") or environment.get("VOLCANO_DEFAULT_JOB_NAMESPACE") or "default",
        scheduler=environment.get("VOLCANO_SCHEDULER_NAME") or "volcano",
    )


def user_name() -> str:
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _value(options: Mapping[str, GivenOption], name: str) -> str:
    return options[name].value if name in options else ""


def _create(
    connection: ApiConnection,
    request: BatchRequest,
    script: str,
    arguments: list[str],
    where: Submission,
    dependency: str,
    chosen: Mapping[str, GivenOption],
) -> int:
    indexes = request.array.indexes if request.array is not None else (None,)
    number = take_numbers(connection, where.namespace, len(indexes))
    bodies = [
        batch_job(request, script, arguments, where, number=number + place, index=index, dependency=dependency,
                  array_number=number if index is not None else 0)
        for place, index in enumerate(indexes)
    ]  # fmt: skip
    for body in bodies:
        connection.create(JOBS, body)
    if "parsable" in chosen:
        say(str(number))
    elif "quiet" not in chosen:
        say(f"Submitted batch job {number}")
    return _wait(connection, where.namespace, [body["metadata"]["name"] for body in bodies]) if "wait" in chosen else 0


def _wait(connection: ApiConnection, namespace: str, names: list[str]) -> int:
    """sbatch --wait: until every job has ended; 1 where one did not complete."""
    waiting, failed = set(names), False
    while waiting:
        for name in sorted(waiting):
            status = connection.get(JOBS, namespace, name).get("status") or {}
            phase = (status.get("state") or {}).get("phase", "")
            if phase in STOPPED_PHASES:
                waiting.discard(name)
                failed = failed or phase != "Completed"
        if waiting:
            wait_blocking(POLL_SECONDS)
    return 1 if failed else 0


# -- dependencies -----------------------------------------------------------------------------------------------------
def resolve(
    connection: ApiConnection, namespace: str, given: GivenOption | None, request: BatchRequest, user: str
) -> str:
    """The annotation for --dependency, with the names of jobs in place of numbers and of scripts' names."""
    if given is None:
        return ""
    text = given.value
    if "?" in text or "+" in text:
        raise OptionRefused(f"{given.place}: {text!r} is not supported: neither ? (any of them) nor +minutes")
    jobs = connection.list(JOBS, namespace)
    parts = []
    for part in filter(None, text.split(",")):
        kind, *words = part.split(":")
        if kind == "singleton":
            names = [job["metadata"]["name"] for job in jobs if _is_same(job, request, user) and not _has_ended(job)]
            parts += [f"{DependencyKind.AFTER_ANY}:{':'.join(names)}"] if names else []
            continue
        if kind not in tuple(DependencyKind):
            raise OptionRefused(
                f"{given.place}: {kind!r} is not supported: only afterok, afternotok, afterany, after and singleton"
            )
        if not words:
            raise OptionRefused(f"{given.place}: {part!r} names no job")
        for word in words:
            found = jobs_called(jobs, word)
            if not found:
                raise OptionRefused(f"{given.place}: Job dependency problem: there is no job {word} in {namespace}")
            parts += [f"{kind}:{job['metadata']['name']}" for job in found]
    return ",".join(dict.fromkeys(parts))


def _is_same(job: JSON, request: BatchRequest, user: str) -> bool:
    labels = labels_of(job)
    return labels.get(JOB_NAME_LABEL) == label_value(request.name) and labels.get(USER_KEY) == label_value(user)


def _has_ended(job: JSON) -> bool:
    return ((job.get("status") or {}).get("state") or {}).get("phase", "") in STOPPED_PHASES
