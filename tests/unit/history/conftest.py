"""The databases that every question of the history is asked of: SQLite, and PostgreSQL where it is installed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgresql import BINARIES, MISSING, new_database, running_postgresql
from volcano.history.database import Database

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def postgresql_server() -> Iterator[str]:
    if BINARIES is None:
        pytest.skip(MISSING)
    with running_postgresql() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'history.db'}"
    return new_database(request.getfixturevalue("postgresql_server"), f"history_{next(_NUMBERS)}")


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    found = Database(database_url)
    found.prepare()
    yield found
    found.close()
