"""A prepared database of each kind, empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from volcano.history.database import Database


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    found = Database(database_url)
    found.prepare()
    yield found
    found.close()
