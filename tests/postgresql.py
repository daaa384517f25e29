"""A real PostgreSQL for tests: made in a temporary folder, reached through a socket in it, ended with the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.needs import reason

FOLDERS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
BINARIES = next((folder for folder in FOLDERS if (folder / "initdb").exists()), None)
MISSING = reason("PostgreSQL is not installed", "apt-get install postgresql")
USER = "postgres"


@contextmanager
def running_postgresql() -> Iterator[str]:
    """The URL of a server; databases are made with `new_database`."""
    assert BINARIES is not None, "the caller has checked"
    folder = Path(tempfile.mkdtemp(prefix="volcano-pg-", dir="/tmp"))
    data = folder / "data"
    try:
        if os.geteuid() == 0:
            owner = pwd.getpwnam(USER)
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        _run(BINARIES / "initdb", "-D", data, "-U", USER, "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C")
        options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off"
        _run(BINARIES / "pg_ctl", "-D", data, "-w", "-l", folder / "log", "-o", options, "start")
        try:
            yield f"postgresql://{USER}@/postgres?host={folder}"
        finally:
            _run(BINARIES / "pg_ctl", "-D", data, "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def new_database(server: str, name: str) -> str:
    """An empty database of the server."""
    import psycopg

    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')
    return server.replace("/postgres?", f"/{name}?")


def _run(*words: object) -> None:
    command = [str(word) for word in words]
    if os.geteuid() == 0:
        command = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--init-groups", *command]
    subprocess.run(command, check=True, cwd="/tmp", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
