"""`volcano env`: where the system's kubeconfig is, as a line for the shell; waits for a system that is starting."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final

import click

from volcano.app.data_directory_state import answers, has_started, is_held, is_starting
from volcano.app.settings import data_directory
from volcano.cli.connection import WAYS_TO_A_SYSTEM
from volcano.machinery.clock import SystemClock, wait_blocking

POLL_SECONDS: Final = 0.1
START_TIMEOUT_SECONDS: Final = 5.0  # for a `volcano up &` that has only just been typed
READY_TIMEOUT_SECONDS: Final = 600.0  # while a system holds the data directory and does not answer yet


@click.command()
@click.option("--data-dir", default=None, help="The data directory of the system.")
def env_command(data_dir: str | None) -> None:
    """Print the export line for KUBECONFIG, once the system answers and its nodes are there.

    \b
    Example:
      eval "$(volcano env)"
    """
    folder = data_directory(data_dir)
    if not _wait_until_ready(folder):
        raise click.ClickException(no_system_in(folder))
    click.echo(f"export KUBECONFIG={shlex.quote(str(folder / 'kubeconfig'))}")


def no_system_in(folder: Path) -> str:
    """What was looked for, and the two ways to get a system."""
    looked = f"no system runs in {folder}"
    if (folder / "kubeconfig").is_file():
        looked += " (its kubeconfig is from an earlier run, and its address does not answer)"
    elif not folder.exists():
        looked += " (there is no such directory)"
    return f"{looked}\n{WAYS_TO_A_SYSTEM}"


def _wait_until_ready(folder: Path) -> bool:
    """True once the system answers and has its nodes; waits only for a system that runs or is starting."""
    clock = SystemClock()
    began = clock.monotonic()
    while True:
        if answers(folder) and has_started(folder):
            return True
        waited = clock.monotonic() - began
        if waited > READY_TIMEOUT_SECONDS or (
            waited > START_TIMEOUT_SECONDS and not is_held(folder) and not is_starting(folder)
        ):
            return False
        wait_blocking(POLL_SECONDS)
