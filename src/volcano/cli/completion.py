"""Shell completion: commands, flags, and live names of jobs, queues, nodes, flows and namespaces."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Final

from volcano.api.batch import PHASES
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType, find_resource_type
from volcano.cli.command_line import BOOL, GLOBAL_FLAGS, Called, CommandSpec, Flag, say
from volcano.cli.completion_scripts import ASKED_ITSELF, SHELLS, completion_script
from volcano.cli.connection import connect_to
from volcano.cli.failures import Failed
from volcano.cli.resources import JOB_FLOWS, JOB_TEMPLATES, JOBS, NODES, PODS, QUEUES

OUTPUTS: Final = ("json", "yaml", "wide", "name")
ACTIONS: Final = ("open", "close", "update")
ENDED: Final = "Ended"
"""What `vcctl job wait --for` takes beside phases."""
ANSWER_SECONDS: Final = 2.0
"""Who presses Tab does not wait longer for a server."""
MAX_NAMES: Final = "500"
EXPLAINED: Final = {"vcjob": JOBS, "queue": QUEUES, "node": NODES, "pod": PODS, "jobflow": JOB_FLOWS}
GROUPS: Final = {"queue": QUEUES, "vqueues": QUEUES, "jobflow": JOB_FLOWS, "jobtemplate": JOB_TEMPLATES}
"""What the names of a group or a program are of; of Jobs for all others."""
NAMESPACE_SHORTS: Final = {"vsub": "-N", "vjobs": "-N", "vcancel": "-N", "vsuspend": "-N", "vresume": "-N"}
KUBECTL_NO_FILES: Final = ":4"
"""The last line for kubectl: do not offer files."""


def completion(called: Called) -> None:
    """`vcctl completion bash`: for all programs."""
    shell = called.arguments[0] if called.arguments else ""
    if shell not in SHELLS:
        raise Failed(f"which shell? one of {', '.join(SHELLS)}")
    say(completion_script(shell, program_names(), called.path[0].name), end="")


def program_names() -> tuple[str, ...]:
    from volcano.cli.programs import programs

    return (ASKED_ITSELF, "kubectl-vc", *(root.name for root in programs()))


def complete(called: Called) -> None:
    """`vcctl __complete -- PROGRAM WORD…`: the candidates for the last word, one a line; nothing when in doubt."""
    name, *words = called.arguments or ("vcctl",)
    root = program_of(name)
    for candidate in candidates(root, words, is_live=True) if root is not None else ():
        say(candidate)


def program_of(name: str) -> CommandSpec | None:
    from volcano.cli.programs import programs

    wanted = "vcctl" if name == "kubectl-vc" else name
    return next((root for root in programs() if root.name == wanted), None)


def complete_for_kubectl() -> None:
    """The program `kubectl_complete-vc`, which kubectl calls to complete `kubectl vc`: candidates, then a directive."""
    root = program_of("kubectl-vc")
    assert root is not None, "vcctl is a program"
    found = candidates(root, sys.argv[1:], is_live=True)
    say("\n".join([*found, KUBECTL_NO_FILES if found else ":0"]))


def candidates(root: CommandSpec, words: list[str], *, is_live: bool = False) -> list[str]:
    """What the last word may become, from the words before it; names of objects only where a server may be asked."""
    *before, last = words or [""]
    before = [word for word in before if word != "="]  # bash gives `--queue=x` as three words
    last = "" if last == "=" else last
    path = _path(root, before)
    flags = [*path[-1].flags, *_extra_flags(root), *GLOBAL_FLAGS]
    asked = _Names(path, before, is_live=is_live)
    name, equals, value = last.partition("=")
    if equals and (given := _needs_value(name, flags)) is not None:
        return [f"{name}={each}" for each in asked.values(given) if each.startswith(value)]
    if before and (flag := _needs_value(before[-1], flags)) is not None:
        found = asked.values(flag)
    elif last.startswith("-"):
        found = [f"--{flag.name}" for flag in flags] + ["--help"]
    else:
        found = asked.arguments(last)
    return sorted({each for each in found if each.startswith(last)})


def _path(root: CommandSpec, words: Sequence[str]) -> list[CommandSpec]:
    path = [root]
    for word in words:
        child = path[-1].child(word)
        if child is not None:
            path.append(child)
    return path


def _extra_flags(root: CommandSpec) -> list[Flag]:
    """sbatch's options, which vsub and vrun understand beside their own."""
    if root.name not in ("vsub", "vrun"):
        return []
    from volcano.cli.slurm.options import NO_VALUE, OPTIONS

    own = {flag.name for flag in root.flags}
    understood = [each for each in OPTIONS if not each.ignored and not each.refused and each.name not in own]
    return [Flag(each.name, each.short, kind=BOOL if each.takes == NO_VALUE else "string") for each in understood]


def _needs_value(word: str, flags: Sequence[Flag]) -> Flag | None:
    for flag in flags:
        if flag.kind != BOOL and word in (f"--{flag.name}", f"-{flag.short}" if flag.short else ""):
            return flag
    return None


class _Names:
    """The candidates of one command line: fixed words, and names that a server has."""

    def __init__(self, path: list[CommandSpec], before: Sequence[str], *, is_live: bool) -> None:
        self._path, self._before, self._is_live = path, before, is_live

    def values(self, flag: Flag) -> list[str]:
        """Of a flag."""
        match flag.name:
            case "name" | "job" | "jobs":
                return self._names()
            case "queue" | "partition" | "parent":
                return self._live(QUEUES)
            case "pod":
                return self._live(PODS)
            case "node" | "nodelist" | "exclude":
                return self._live(NODES)
            case "namespace":
                return self._live(_namespaces())
            case "output":
                return list(OUTPUTS)
            case "action":
                return list(ACTIONS)
            case "for":
                return [*map(str, PHASES), ENDED]
        return list(flag.choices)

    def arguments(self, last: str) -> list[str]:
        command = self._path[-1]
        if command.children:
            return [child.name for child in command.children if not child.hidden]
        if command.name == "completion":
            return list(SHELLS)
        if command.arguments.startswith("KIND/NAME"):
            kind, slash, _ = last.partition("/")
            if not slash:
                return [f"{each}/" for each in EXPLAINED]
            return [f"{kind}/{name}" for name in (self._live(EXPLAINED[kind]) if kind in EXPLAINED else ())]
        if "|" in command.arguments:
            return command.arguments.strip("[]").split("|")
        return self._names() if "NAME" in command.arguments and "--" not in self._before else []

    def _names(self) -> list[str]:
        group = self._path[1].name if len(self._path) > 1 else self._path[0].name
        return self._live(GROUPS.get(group, JOBS))

    def _live(self, resource: ResourceType) -> list[str]:
        """Names from the API server; silence when it cannot be asked."""
        if not self._is_live:
            return []
        namespace = self._given("--namespace", NAMESPACE_SHORTS.get(self._path[0].name, "-n")) or "default"
        try:
            connection = connect_to(
                self._given("--kubeconfig", "-k"), self._given("--master", "-s"), answer_seconds=ANSWER_SECONDS
            )
            items: list[JSON] = connection.list(resource, namespace if resource.namespaced else "", limit=MAX_NAMES)
        except (Failed, OSError, ValueError):
            return []
        return [str(item["metadata"]["name"]) for item in items]

    def _given(self, *spellings: str) -> str:
        for word, value in itertools.pairwise(self._before):
            if word in spellings:
                return value
        return ""


def _namespaces() -> ResourceType:
    found = find_resource_type("", "Namespace")
    assert found is not None, "Namespace is in the scheme"
    return found
