"""`volcano env`: where the system's kubeconfig is, as a line for the shell; waits for a system that is starting."""

from __future__ import annotations

import fcntl
import os
import shlex
from pathlib import Path
from typing import Final

import click

from volcano.api.errors import ApiError
from volcano.app.settings import data_directory
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock, wait_blocking
from volcano.machinery.kubeconfig import ConfigError, load_endpoint
from volcano.machinery.one_shot import OneShot, finish
from volcano.machinery.transport import Request

POLL_SECONDS: Final = 0.1
START_TIMEOUT_SECONDS: Final = 5.0  # for a `volcano up &` that has only just been typed
READY_TIMEOUT_SECONDS: Final = 600.0  # while a system holds the data directory and does not answer yet


@click.command()
@click.option("--data-dir", default=None, help="The data directory of the system.")
def env_command(data_dir: str | None) -> None:
    """Print the export line for KUBECONFIG, once the system answers.

    \b
    Example:
      eval "$(volcano env)"
    """
    folder = data_directory(data_dir)
    if not _wait_until_ready(folder):
        raise click.ClickException(f"no system runs in {folder}: start one with `volcano up`")
    click.echo(f"export KUBECONFIG={shlex.quote(str(folder / 'kubeconfig'))}")


def _wait_until_ready(folder: Path) -> bool:
    """True as soon as the system answers; waits for one that is starting, not for one that does not exist."""
    clock = SystemClock()
    began = clock.monotonic()
    while True:
        if _answers(folder / "kubeconfig"):
            return True
        waited = clock.monotonic() - began
        if waited > READY_TIMEOUT_SECONDS or (waited > START_TIMEOUT_SECONDS and not _is_held(folder / "lock")):
            return False
        wait_blocking(POLL_SECONDS)


def _answers(kubeconfig: Path) -> bool:
    if not kubeconfig.is_file():
        return False
    try:
        finish(Client(OneShot(load_endpoint(kubeconfig))).raw(Request("GET", "/readyz")))
    except (ApiError, OSError, ConfigError):
        return False
    return True


def _is_held(lock: Path) -> bool:
    """Whether a system runs in the data directory."""
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(handle)
