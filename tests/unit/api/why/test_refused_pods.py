"""What refusals of pods mean is read from messages of any length."""

from __future__ import annotations

import time

from volcano.api.why.refused_pods import refusal_cause


def test_a_message_of_a_megabyte_is_read_at_once():
    started = time.process_time()

    refusal_cause("x" * 1_000_000, "default")

    assert time.process_time() - started < 2
