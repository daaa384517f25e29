"""The table of job plugins: their names, their arguments, and which plugins they pull in.

Shared by admission (which names are known, what to add, what to warn about) and the job controller (what the
arguments say). Arguments are read as Go's `flag` package reads them: users' jobs rely on its corners.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

ArgumentValue: TypeAlias = str | int | bool


@dataclass(frozen=True, slots=True)
class Argument:
    """One `--name=value`; the type of the default is the type of the value."""

    name: str
    default: ArgumentValue
    meaning: str


@dataclass(frozen=True, slots=True)
class JobPlugin:
    """One key of a Job's `spec.plugins`."""

    name: str
    summary: str
    arguments: tuple[Argument, ...] = ()
    pulls_in: tuple[str, ...] = ()
    """Plugins that admission adds, without arguments, when they are not listed."""
    task_arguments: tuple[str, ...] = ()
    """Arguments that name a task which must be in the job."""

    def argument(self, name: str) -> Argument | None:
        return next((argument for argument in self.arguments if argument.name == name), None)


_TABLE: Final = (
    JobPlugin("env", "each container knows its index in the task"),
    JobPlugin(
        "svc",
        "pods of the job find each other by name",
        (
            Argument("publish-not-ready-addresses", False, "names resolve before pods are ready"),
            Argument("disable-network-policy", False, "make no NetworkPolicy around the job"),
            Argument("inject-hosts-env", True, "host lists also as environment variables"),
        ),
    ),
    JobPlugin(
        "ssh",
        "pods of the job may log in to each other without a password",
        (
            Argument("ssh-key-file-path", "/root/.ssh", "where the keys are mounted"),
            Argument("ssh-private-key", "", "use this key instead of a generated one"),
            Argument("ssh-public-key", "", "goes with the private key"),
            Argument("ssh-port", 22, "port in the client configuration"),
        ),
    ),
    JobPlugin(
        "tensorflow",
        "TF_CONFIG for parameter servers, workers, chief and evaluator",
        (
            Argument("ps", "ps", "task of the parameter servers"),
            Argument("worker", "worker", "task of the workers"),
            Argument("chief", "chief", "task of the chief"),
            Argument("evaluator", "evaluator", "task of the evaluator"),
            Argument("port", 2222, "port in the cluster's addresses"),
        ),
        pulls_in=("svc",),
    ),
    JobPlugin(
        "pytorch",
        "MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK for torch.distributed",
        (
            Argument("master", "master", "task of the master"),
            Argument("worker", "worker", "task of the workers"),
            Argument("port", 23456, "rendezvous port"),
            Argument("wait-master-enabled", False, "workers wait for the master in an init container"),
            Argument("wait-master-timeout", 300, "seconds that they wait"),
            Argument("wait-master-image", "busybox:1.36.1", "image of that init container"),
        ),
        pulls_in=("svc",),
    ),
    JobPlugin(
        "mpi",
        "MPI_HOST on the master, and the ssh port",
        (
            Argument("master", "master", "task of the master"),
            Argument("worker", "worker", "task of the workers"),
            Argument("port", 22, "container port to open"),
        ),
        pulls_in=("svc", "ssh"),
        task_arguments=("master",),
    ),
    JobPlugin(
        "ray",
        "a Ray cluster: head, workers, and a Service for the head",
        (
            Argument("head", "head", "task of the head"),
            Argument("headContainer", "head", "container in the head's pod"),
            Argument("worker", "worker", "task of the workers"),
            Argument("workerContainer", "worker", "container in the workers' pods"),
            Argument("port", 6379, "port of the global control store"),
            Argument("dashboardPort", 8265, "port of the dashboard"),
            Argument("clientPort", 10001, "port of the client server"),
        ),
        pulls_in=("svc",),
    ),
    JobPlugin(
        "hcclrank",
        "the pod's rank as an annotation, for HCCL",
        (
            Argument("master", "master", "task of the master"),
            Argument("worker", "worker", "task of the workers"),
        ),
    ),
)
JOB_PLUGINS: Final[Mapping[str, JobPlugin]] = MappingProxyType({plugin.name: plugin for plugin in _TABLE})


@dataclass(frozen=True, slots=True)
class ParsedArguments:
    """All arguments of a plugin, and why reading stopped early: the first bad one hides those after it."""

    values: Mapping[str, ArgumentValue]
    error: str = ""
    ignored: tuple[str, ...] = field(default=())

    def text(self, name: str) -> str:
        return str(self.values[name])

    def number(self, name: str) -> int:
        return int(self.values[name])

    def switch(self, name: str) -> bool:
        return bool(self.values[name])


class _Stop(Exception):
    """Reading ends here."""


def parse_arguments(plugin: JobPlugin, arguments: Sequence[str]) -> ParsedArguments:
    """What the list says. It never fails: what was read before the first error counts, the rest keeps its default."""
    values: dict[str, ArgumentValue] = {argument.name: argument.default for argument in plugin.arguments}
    rest = list(arguments)
    while rest:
        unread = tuple(rest)
        try:
            values.update([_take(plugin, rest)])
        except _Stop as stop:
            return ParsedArguments(MappingProxyType(values), str(stop), unread)
    return ParsedArguments(MappingProxyType(values))


def added_plugins(names: Iterable[str]) -> tuple[str, ...]:
    """Plugins that the named ones need and that are not among them, in the order admission adds them."""
    present = list(names)
    needed = (pulled for name in present if name in JOB_PLUGINS for pulled in JOB_PLUGINS[name].pulls_in)
    return tuple(dict.fromkeys(pulled for pulled in needed if pulled not in present))


def _take(plugin: JobPlugin, rest: list[str]) -> tuple[str, ArgumentValue]:
    text = rest.pop(0)
    if len(text) < 2 or not text.startswith("-"):
        raise _Stop(f"not an argument: {text!r}")
    bare = text.removeprefix("-").removeprefix("-")
    if not bare or bare[0] in "-=":
        raise _Stop(f"bad argument syntax: {text!r}")
    name, equals, value = bare.partition("=")
    argument = plugin.argument(name)
    if argument is None:
        raise _Stop(f"unknown argument: {text!r}")
    if isinstance(argument.default, bool):
        return name, _boolean(name, value) if equals else True
    if not equals:
        if not rest:
            raise _Stop(f"argument needs a value: {text!r}")
        value = rest.pop(0)
    return name, _integer(name, value) if isinstance(argument.default, int) else value


_TRUE: Final = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "false", "FALSE", "False"})
_INTEGER: Final = re.compile(r"[+-]?(0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO]?[0-7_]*|[1-9][0-9_]*)")
_LARGEST: Final = 2**63 - 1


def _boolean(name: str, value: str) -> bool:
    if value in _TRUE or value in _FALSE:
        return value in _TRUE
    raise _Stop(f"invalid boolean value {value!r} for {name!r}")


def _integer(name: str, value: str) -> int:
    if len(value) <= 70 and _INTEGER.fullmatch(value):
        octal = re.sub(r"^([+-]?)0(?=[0-7_])", r"\g<1>0o", value)
        try:
            number = int(octal, 0)
        except ValueError:
            number = _LARGEST + 1
        if -_LARGEST - 1 <= number <= _LARGEST:
            return number
    raise _Stop(f"invalid integer value {value!r} for {name!r}")
