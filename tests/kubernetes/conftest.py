"""All of these tests run on the real control plane of fixtures.py, and on one worker."""

from __future__ import annotations

from pathlib import Path

import pytest

LAST = "test_rights_used.py"
"""Looks back at what all the others did."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of it on one worker: there is one control plane, and the machine is small."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.kubernetes)
            item.add_marker(pytest.mark.xdist_group("kubernetes"))
    items.sort(key=lambda item: item.path.name == LAST)
