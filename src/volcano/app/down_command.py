"""`volcano down` and `volcano reset`: end the system of a data directory, and remove what it kept there."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from volcano.app.dashboard_service import LINK_FILE
from volcano.app.data_directory_lock import locked
from volcano.app.data_directory_state import KUBECONFIG, LOCK, holder, is_held, supervisor_of
from volcano.app.settings import HISTORY_FILE, STORE, data_directory
from volcano.app.status_command import DATA_DIR
from volcano.embedded.agent.storage.removal import remove_tree
from volcano.machinery.clock import SystemClock, wait_blocking

POLL_SECONDS: Final = 0.1
DEFAULT_TIMEOUT_SECONDS: Final = 90
"""Longer than pods have to end (up_command.SHUTDOWN_GRACE)."""
KEPT_THINGS: Final = ("agent", "pki", KUBECONFIG, LOCK, LINK_FILE)

TIMEOUT: Final = click.option(
    "--timeout", type=click.IntRange(1), default=DEFAULT_TIMEOUT_SECONDS, show_default=True, metavar="SECONDS",
    help="How long to wait for the end of a running system.",
)  # fmt: skip


@click.command()
@DATA_DIR
@TIMEOUT
def down_command(data_dir: str | None, timeout: int) -> None:
    """End the system that runs on this machine: pods are ended, objects are kept for the next `volcano up`.

    \b
    Example:
      volcano down
    """
    folder = data_directory(data_dir)
    if not _end_system(folder, timeout):
        click.echo(f"no system runs in {folder}")
    elif supervisor_of(folder) is None:
        click.echo(f"the system in {folder} has ended; `volcano up` starts it again with its objects")
    else:
        click.echo(f"the system in {folder} has ended; its pods go on, and `volcano up` finds them again")


@click.command()
@DATA_DIR
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@TIMEOUT
def reset_command(data_dir: str | None, yes: bool, timeout: int) -> None:
    """Remove everything that the system on this machine keeps: objects, keys, logs and volumes of pods.

    It asks first. A running system is ended. Files that the system did not make are left.

    \b
    Example:
      volcano reset --yes
    """
    folder = data_directory(data_dir)
    kept = _kept_in(folder)
    if not kept:
        click.echo(f"nothing is kept in {folder}")
        return
    running = " The system that runs there is ended first." if is_held(folder) else ""
    if not yes:
        click.confirm(f"Remove all jobs, queues, keys, logs and volumes in {folder}?{running}", abort=True, err=True)
    _end_system(folder, timeout)
    _end_supervisor(folder, timeout)
    with locked(folder):
        for each in _kept_in(folder):
            remove_tree(each) if each.is_dir() and not each.is_symlink() else each.unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()
    click.echo(f"{folder} is empty; `volcano up` starts anew")


def _kept_in(folder: Path) -> list[Path]:
    """What a system makes in its data directory."""
    if not folder.is_dir():
        return []
    databases = (STORE, HISTORY_FILE)  # and their logs
    return [each for each in sorted(folder.iterdir()) if each.name in KEPT_THINGS or each.name.startswith(databases)]


def _end_system(folder: Path, timeout: int) -> bool:
    """Ask the system to end and wait for it; whether one was running."""
    if not is_held(folder):
        return False
    process = holder(folder)
    if process is None:
        raise click.ClickException(f"{folder} is in use, but its lock does not name the process; end it by hand")
    try:
        os.kill(process, signal.SIGTERM)
    except ProcessLookupError:
        pass  # it has just ended by itself
    except PermissionError as error:
        raise click.ClickException(f"process {process}, which runs in {folder}, belongs to another user") from error
    click.echo(f"process {process} ends: pods get time to end", err=True)
    if not _until(lambda: not is_held(folder), timeout):
        raise click.ClickException(f"process {process} has not ended after {timeout} s; `kill -9 {process}` ends it")
    return True


def _end_supervisor(folder: Path, timeout: int) -> None:
    """End pods that an earlier `volcano up --keep-pods` left running."""
    process = supervisor_of(folder)
    if process is None:
        return
    os.kill(process, signal.SIGTERM)
    if not _until(lambda: supervisor_of(folder) is None, timeout):
        raise click.ClickException(f"pods of {folder} go on (process {process}), so that nothing was removed")


def _until(holds: Callable[[], bool], timeout: float) -> bool:
    clock = SystemClock()
    end = clock.monotonic() + timeout
    while clock.monotonic() < end:
        if holds():
            return True
        wait_blocking(POLL_SECONDS)
    return holds()
