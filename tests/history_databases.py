"""The databases that the history is tested with: SQLite, and PostgreSQL where it is installed; a pytest plugin."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgresql import BINARIES, MISSING, new_database, running_postgresql

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    if BINARIES is None:
        pytest.skip(MISSING)
    with running_postgresql() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'history.db'}"
    return new_database(request.getfixturevalue("postgresql_server"), f"history_{next(_NUMBERS)}")
