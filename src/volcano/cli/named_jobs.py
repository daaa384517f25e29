"""Which jobs a command is about: names as flags and arguments, patterns, labels."""

from __future__ import annotations

import fnmatch
import sys
from collections.abc import Callable

import msgspec

from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.api.nearest_words import did_you_mean
from volcano.cli.command_line import Called
from volcano.cli.connection import ApiConnection
from volcano.cli.failures import Failed
from volcano.cli.resources import JOBS

NOT_FOUND = 404
DEFAULT_NAMESPACE = "default"
PATTERN = frozenset("*?[")


def for_each_job(
    called: Called, connection: ApiConnection, verb: str, act: Callable[[str, str], None], *, mandatory: str = ""
) -> None:
    """Act on every named job; one that cannot be acted on does not keep the others from it."""
    problems = []
    mandatory = mandatory or f"job name is mandatory to {verb} a particular job"
    for namespace, name in named_jobs(called, connection, mandatory):
        try:
            act(namespace, name)
        except Failed as error:
            problems.append(f"{error}{_likely(connection, namespace, name, str(error))}")
    if problems:
        raise Failed("; ".join(problems))


def named_jobs(called: Called, connection: ApiConnection, mandatory: str) -> list[tuple[str, str]]:
    """Namespace and name of each job; a Failed with `mandatory` where none is named."""
    values = called.values
    namespace, labels = values["namespace"], values.get("labels") or ""
    names = [name for name in (values["name"], *called.arguments) if name]
    if not names and not labels:
        return [(DEFAULT_NAMESPACE, _named_by_namespace(called, connection, mandatory))]
    if not labels and not any(PATTERN & {*name} for name in names):
        return [(namespace, name) for name in dict.fromkeys(names)]
    selector = {"labelSelector": labels} if labels else {}
    there = [job["metadata"]["name"] for job in connection.list(JOBS, namespace, **selector)]
    found = [name for name in there if not names or any(fnmatch.fnmatchcase(name, pattern) for pattern in names)]
    if not found:
        wanted = " ".join([*names, *((f"with labels {labels}",) if labels else ())])
        raise Failed(f"no job {wanted} in namespace {namespace}")
    return [(namespace, name) for name in found]


def _named_by_namespace(called: Called, connection: ApiConnection, mandatory: str) -> str:
    """`vcctl job … -n X` with no name means the job X, where there is one: older texts write it so."""
    name = called.values["namespace"]
    if called.path[0].name not in ("vcctl", "kubectl-vc") or name == DEFAULT_NAMESPACE:
        raise Failed(mandatory)
    try:
        connection.attempt(connection.client.get_json(JOBS, Key(DEFAULT_NAMESPACE, name)))
    except ApiError as error:
        if error.status_code != NOT_FOUND:
            raise Failed(error.message) from error
        raise Failed(f"{mandatory}; -n is the namespace, and there is no job {name} in {DEFAULT_NAMESPACE}") from error
    words = " ".join(command.name for command in called.path)
    print(f"-n is the namespace; the job {name} in {DEFAULT_NAMESPACE} is taken: {words} {name}", file=sys.stderr)
    return str(name)


def _likely(connection: ApiConnection, namespace: str, name: str, message: str) -> str:
    """Where the job does not exist: the nearest name of one that does."""
    if not message.endswith("not found"):
        return ""
    try:
        return did_you_mean(name, [job["metadata"]["name"] for job in connection.list(JOBS, namespace, limit="500")])
    except (Failed, msgspec.MsgspecError, RecursionError):
        return ""
