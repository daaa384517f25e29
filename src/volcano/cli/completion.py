"""Shell completion: commands, flags, and live names of jobs, queues, flows and namespaces."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from volcano.api.scheme import find_resource_type
from volcano.cli.command_line import BOOL, GLOBAL_FLAGS, Called, CommandSpec, Flag, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.resources import JOB_FLOWS, JOB_TEMPLATES, JOBS, QUEUES

BASH: Final = """\
# {program} completion; put this into ~/.bashrc:  source <({program} completion bash)
_{identifier}_complete() {{
    local IFS=$'\\n'
    COMPREPLY=($({program} __complete -- "${{COMP_WORDS[@]:1:COMP_CWORD}}" 2>/dev/null))
}}
complete -o default -F _{identifier}_complete {program}
"""
ZSH: Final = """\
#compdef {program}
# {program} completion; put this into ~/.zshrc:  source <({program} completion zsh)
_{identifier}_complete() {{
    local -a candidates
    candidates=("${{(@f)$({program} __complete -- "${{(@)words[2,CURRENT]}}" 2>/dev/null)}}")
    compadd -a candidates
}}
compdef _{identifier}_complete {program}
"""
FISH: Final = """\
# {program} completion; put this into ~/.config/fish/completions/{program}.fish
complete -c {program} -f -a '({program} __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'
"""
SHELLS: Final = {"bash": BASH, "zsh": ZSH, "fish": FISH}
OUTPUTS: Final = ("json", "yaml", "wide", "name")
ACTIONS: Final = ("open", "close", "update")


def completion(called: Called) -> None:
    """`vcctl completion bash`."""
    shell = called.arguments[0] if called.arguments else ""
    if shell not in SHELLS:
        raise Failed(f"which shell? one of {', '.join(SHELLS)}")
    program = called.path[0].name
    say(SHELLS[shell].format(program=program, identifier=program.replace("-", "_")), end="")


def complete(called: Called) -> None:
    """`vcctl __complete -- words…`: the candidates for the last word, one a line; nothing when in doubt."""
    for candidate in candidates(called.path[0], list(called.arguments), called):
        say(candidate)


def candidates(root: CommandSpec, words: list[str], called: Called | None = None) -> list[str]:
    *before, last = words or [""]
    path = _path(root, before)
    command = path[-1]
    flags = [*command.flags, *GLOBAL_FLAGS]
    if before and (flag := _needs_value(before[-1], flags)) is not None:
        found = _values(path, flag, before, called)
    elif last.startswith("-"):
        found = [f"--{flag.name}" for flag in flags] + ["--help"]
    elif command.children:
        found = [child.name for child in command.children if not child.name.startswith("_")]
    elif command.name == "completion":
        found = list(SHELLS)
    elif "NAME" in command.arguments:
        found = _names(path, before, called)
    else:
        found = []
    return sorted(each for each in found if each.startswith(last))


def _path(root: CommandSpec, words: Sequence[str]) -> list[CommandSpec]:
    path = [root]
    for word in words:
        child = path[-1].child(word)
        if child is not None:
            path.append(child)
    return path


def _needs_value(word: str, flags: Sequence[Flag]) -> Flag | None:
    for flag in flags:
        if flag.kind != BOOL and word in (f"--{flag.name}", f"-{flag.short}" if flag.short else ""):
            return flag
    return None


def _values(path: list[CommandSpec], flag: Flag, before: Sequence[str], called: Called | None) -> list[str]:
    match flag.name:
        case "name" | "job":
            return _names(path, before, called)
        case "queue":
            return _live(called, before, "queues")
        case "namespace":
            return _live(called, before, "namespaces")
        case "output":
            return list(OUTPUTS)
        case "action":
            return list(ACTIONS)
    return []


def _names(path: list[CommandSpec], before: Sequence[str], called: Called | None) -> list[str]:
    group = path[1].name if len(path) > 1 else path[0].name
    kind = {"queue": "queues", "vqueues": "queues", "jobflow": "jobflows", "jobtemplate": "jobtemplates"}
    return _live(called, before, kind.get(group, "jobs"))


def _live(called: Called | None, before: Sequence[str], kind: str) -> list[str]:
    """Names from the API server; silence when it cannot be asked."""
    if called is None:
        return []
    try:
        return _listed(connect(_with_kubeconfig(called, before)), kind, _given(before, "--namespace", "-n"))
    except (Failed, OSError, ValueError):
        return []


def _listed(connection: ApiConnection, kind: str, namespace: str) -> list[str]:
    namespaces = find_resource_type("", "Namespace")
    assert namespaces is not None, "Namespace is in the scheme"
    rows = {
        "jobs": JOBS,
        "queues": QUEUES,
        "jobflows": JOB_FLOWS,
        "jobtemplates": JOB_TEMPLATES,
        "namespaces": namespaces,
    }
    resource = rows[kind]
    where = (namespace or "default") if resource.namespaced else ""
    return [item["metadata"]["name"] for item in connection.list(resource, where, limit="500")]


def _with_kubeconfig(called: Called, before: Sequence[str]) -> Called:
    values = {
        **called.values,
        "kubeconfig": _given(before, "--kubeconfig", "-k"),
        "master": _given(before, "--master", "-s"),
    }
    return Called(called.path, values, called.arguments)


def _given(before: Sequence[str], *spellings: str) -> str:
    for word, value in itertools.pairwise(before):
        if word in spellings:
            return value
    return ""
