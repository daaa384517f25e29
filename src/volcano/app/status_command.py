"""`volcano status`: whether a system runs in the data directory, where it answers, and what is in it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final

import click

from volcano.api.batch import STOPPED_PHASES, Job
from volcano.api.core import Node
from volcano.api.errors import ApiError
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.app.data_directory_state import KUBECONFIG, answers, client_of, holder, is_held, supervisor_of
from volcano.app.env_command import no_system_in
from volcano.app.settings import data_directory
from volcano.machinery.kubeconfig import ConfigError, load_endpoint
from volcano.machinery.one_shot import finish

RUNNING, STARTING, STOPPED = 0, 2, 3
"""Exit codes; 3 is what service managers answer for a service that does not run."""
DATA_DIR: Final = click.option(
    "--data-dir", default=None, help="The data directory of the system [default: ~/.local/share/volcano]."
)


@click.command()
@DATA_DIR
def status_command(data_dir: str | None) -> None:
    """Say whether a system runs on this machine, and what is in it.

    \b
    Exit code: 0 it runs; 2 it is starting or stopping; 3 none runs.

    \b
    Example:
      volcano status
    """
    folder = data_directory(data_dir)
    if answers(folder):
        for line in _running(folder):
            click.echo(line)
        raise SystemExit(RUNNING)
    if is_held(folder):
        click.echo(f"a system is starting or stopping in {folder} (process {holder(folder)}); it does not answer yet")
        raise SystemExit(STARTING)
    click.echo(no_system_in(folder))
    pods = supervisor_of(folder)
    if pods is not None:
        click.echo(f"Pods of an earlier run go on (process {pods}): `volcano up` finds them again.")
    raise SystemExit(STOPPED)


def _running(folder: Path) -> list[str]:
    process = holder(folder)
    lines = [f"volcano is up{f' (process {process})' if process else ''}"]
    lines.append(f"  API server  {load_endpoint(folder / KUBECONFIG).server}")
    lines.append(f"  data        {folder}")
    try:
        lines += [f"  {name:<11} {text}" for name, text in _contents(folder)]
    except (ApiError, OSError, ConfigError) as error:
        lines.append(f"  it answers, but its objects cannot be read: {error}")
    return lines


def _contents(folder: Path) -> list[tuple[str, str]]:
    def listed(kind: type[Any]) -> list[dict[str, Any]]:
        return list(finish(client_of(folder).list_json(resource_type(kind), "")).get("items") or ())

    nodes, queues, jobs = listed(Node), listed(Queue), listed(Job)
    ready = sum(
        any(
            each.get("type") == "Ready" and each.get("status") == "True" for each in _status(node).get("conditions", ())
        )
        for node in nodes
    )
    phases = Counter((_status(job).get("state") or {}).get("phase") or "Pending" for job in jobs)
    active = sum(count for phase, count in phases.items() if phase not in STOPPED_PHASES)
    counted = ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items()))
    return [
        ("nodes", f"{ready} of {len(nodes)} ready"),
        ("queues", ", ".join(sorted(queue["metadata"]["name"] for queue in queues)[:10])),
        ("jobs", f"{active} of {len(jobs)} active{f' ({counted})' if counted else ''}"),
    ]


def _status(item: dict[str, Any]) -> dict[str, Any]:
    return item.get("status") or {}
