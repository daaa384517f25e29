"""`volcano doctor`: what this machine can do for pods, and what would improve it."""

from __future__ import annotations

import os
import platform
import pwd
import sys
from pathlib import Path
from typing import Final

import click

from volcano import __version__
from volcano.app.data_directory_state import answers, is_held
from volcano.app.machine_devices import described
from volcano.app.port_holder import holder_of
from volcano.app.settings import DEFAULT_PORT, data_directory
from volcano.app.status_command import DATA_DIR
from volcano.embedded.agent.devices.detection import find_cards
from volcano.embedded.agent.node.abilities import Ability, abilities
from volcano.embedded.agent.node.capacity import machine_capacity

USABLE, UNUSABLE = 0, 1
NEEDED: Final = ("data directory", "disk")
"""Without these no system can run; everything else only limits what pods can do."""


@click.command()
@DATA_DIR
def doctor_command(data_dir: str | None) -> None:
    """Say what this machine can do: user namespaces, control groups, network, programs; and what would improve it.

    \b
    Exit code: 0 a system can run here; 1 it cannot.

    \b
    Example:
      volcano doctor
    """
    folder = data_directory(data_dir)
    click.echo(f"volcano {__version__}, Python {platform.python_version()} ({sys.executable})")
    click.echo(f"{platform.system()} {platform.release()} {platform.machine()}, user {_user()}")
    cards = find_cards()
    amounts = [f"{name} {amount}" for name, amount in machine_capacity(folder).items()]
    click.echo(f"as a node: {', '.join([*amounts, *described(cards)])}")
    click.echo("".join(f"{warning}\n" for warning in cards.warnings))
    found = [*abilities(folder), _port(folder)]
    width = max(len(each.name) for each in found)
    for each in found:
        click.echo(f"  {'ok     ' if each.is_there else 'MISSING'}  {each.name:<{width}}  {each.detail}")
    helpful = [each for each in found if each.improvement]
    if helpful:
        click.echo("\nWhat would improve it:")
        for each in helpful:
            needs = f" (needs {each.capability})" if each.capability else ""
            click.echo(f"  {each.name}{needs}: {each.improvement}")
    unusable = [each.name for each in found if each.name in NEEDED and not each.is_there]
    click.echo(f"\nA system cannot run here: {', '.join(unusable)}." if unusable else "\nA system can run here.")
    raise SystemExit(UNUSABLE if unusable else USABLE)


def _user() -> str:
    try:
        return f"{pwd.getpwuid(os.geteuid()).pw_name} ({os.geteuid()})"
    except KeyError:
        return str(os.geteuid())


def _port(folder: Path) -> Ability:
    if answers(folder) or is_held(folder):
        return Ability("system", True, f"one runs in {folder}")
    taken_by = holder_of(DEFAULT_PORT)
    if taken_by:
        return Ability("port", True, f"{DEFAULT_PORT} is taken by {taken_by}; `volcano up` takes a free one")
    return Ability("port", True, f"{DEFAULT_PORT} is free")
