"""`volcano store`: check, repair, back up and restore the database of an embedded system, and rotate its key."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click

from volcano.api.errors import ApiError
from volcano.app.data_directory_lock import DataDirectoryInUse, locked
from volcano.app.settings import STORE, data_directory
from volcano.embedded.apiserver.store import salvage
from volcano.embedded.apiserver.store.log_file import UnusableFile, explained, verified
from volcano.embedded.apiserver.store.private_files import replace_private_file
from volcano.embedded.apiserver.store.secret_keys import KeyFileError
from volcano.machinery.client import Client
from volcano.machinery.kubeconfig import ConfigError, load_endpoint
from volcano.machinery.one_shot import OneShot, finish
from volcano.machinery.transport import Request

MAX_LINES: Final = 200

DATA_DIR = click.option("--data-dir", default=None, help="The data directory [default: ~/.local/share/volcano].")


@click.group()
def store_command() -> None:
    """Look after the database of an embedded system.

    \b
    Examples:
      volcano store check
      volcano store backup monday.db
      volcano store restore monday.db
    """


@contextmanager
def _database(data_dir: str | None) -> Iterator[Path]:
    """The database of a data directory in which no system runs."""
    folder = data_directory(data_dir)
    if not folder.is_dir():
        raise click.ClickException(f"there is no data directory {folder}")
    with locked(folder), _told(folder / STORE):
        yield folder / STORE


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Errors of the file as messages: what is damaged, that the disk is full, or why it cannot be read."""
    try:
        yield
    except sqlite3.Error as error:
        raise click.ClickException(explained(path, error)) from error
    except (UnusableFile, KeyFileError, OSError) as error:
        raise click.ClickException(str(error)) from error


@store_command.command()
@DATA_DIR
def check(data_dir: str | None) -> None:
    """Verify every row; the system must not run."""
    with _database(data_dir) as path:
        if not path.exists():
            raise click.ClickException(f"there is no {path}")
        contents = verified(path)
        click.echo(f"{path}: {len(contents.values)} entries up to revision {contents.state.revision}, all intact")


@store_command.command()
@DATA_DIR
def repair(data_dir: str | None) -> None:
    """Keep all that can be read of a damaged database, and say what is lost."""
    with _database(data_dir) as path:
        done = salvage.repair(path)
        for line in done.lost[:MAX_LINES]:
            click.echo(f"lost: {line}")
        if len(done.lost) > MAX_LINES:
            click.echo(f"lost: and {len(done.lost) - MAX_LINES} more")
        click.echo(
            f"{path}: {done.objects} objects kept at revision {done.revision}; the old file is {done.damaged_copy}"
        )


@store_command.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@DATA_DIR
def backup(file: Path, data_dir: str | None) -> None:
    """Copy the database, also while the system runs. The keys of its Secrets go to FILE.keys."""
    if file.exists():
        raise click.ClickException(f"{file} exists; choose another name")
    folder = data_directory(data_dir)
    try:
        with _database(data_dir) as path:
            salvage.back_up(path, file)
    except DataDirectoryInUse:
        with _told(file):
            replace_private_file(file, _from_server(folder))
            salvage.copy_keys(folder / STORE, file)
    with _told(file):
        contents = verified(file)
    click.echo(f"{file}: {len(contents.values)} entries up to revision {contents.state.revision}")


def _from_server(folder: Path) -> bytes:
    try:
        transport = OneShot(load_endpoint(folder / "kubeconfig"))
        return finish(Client(transport, agent="volcano-store").raw(Request("GET", "/store/backup"))).body
    except (ApiError, OSError, ConfigError) as error:
        raise click.ClickException(f"the system that runs in {folder} made no backup: {error}") from error


@store_command.command()
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@DATA_DIR
def restore(file: Path, data_dir: str | None) -> None:
    """Go back to a backup; the present database stays beside it under another name. The system must not run."""
    data_directory(data_dir).mkdir(parents=True, exist_ok=True, mode=0o700)
    with _database(data_dir) as path:
        entries = salvage.restore(path, file)
        click.echo(f"{path}: {entries} entries from {file}")


@store_command.command("rotate-key")
@DATA_DIR
def rotate_key(data_dir: str | None) -> None:
    """Encrypt all Secrets with a new key. The system must not run."""
    with _database(data_dir) as path:
        if not path.exists():
            raise click.ClickException(f"there is no {path}")
        click.echo(f"{path}: Secrets are encrypted with the new key {salvage.rotate_key(path)}")
