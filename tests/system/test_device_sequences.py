"""No device is given twice and none is lost, whatever happens between any two writes; LONG=yes tries thousands more."""

from __future__ import annotations

import logging

import pytest

from tests.needs import MANY_MINUTES
from tests.system.device_sequences import DeviceSequences

SEQUENCES = 40
"""On one API server, one after the other."""


@pytest.fixture(autouse=True)
def quiet_logs():
    logger = logging.getLogger("volcano")
    before, logger.propagate = logger.propagate, False
    yield
    logger.propagate = before


def hold(seed: int) -> None:
    sequences = DeviceSequences(seed)

    assert sequences.run(SEQUENCES) == []
    assert sequences.books.allocations > SEQUENCES, "much is allocated on the way"


@pytest.mark.parametrize("seed", range(3))
def test_devices_counters_and_capacities_are_never_given_beyond_what_there_is_and_nothing_leaks(seed: int):
    hold(seed)


@MANY_MINUTES
@pytest.mark.parametrize("seed", range(100, 175))
def test_the_same_holds_in_thousands_of_sequences(seed: int):
    hold(seed)
