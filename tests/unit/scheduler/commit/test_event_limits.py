"""The scheduler does not write the same event every cycle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from volcano.scheduler.commit.event_limits import (
    MAX_MESSAGES_PER_REASON,
    NEW_MESSAGE_INTERVAL,
    REPEAT_INTERVAL,
    EventLimiter,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MOMENT = timedelta(seconds=1)


def test_the_same_event_is_recorded_again_only_before_it_would_expire():
    limiter = EventLimiter()

    assert limiter.allows("j", "Unschedulable", "no cpu", NOW)
    assert not limiter.allows("j", "Unschedulable", "no cpu", NOW + REPEAT_INTERVAL - MOMENT)
    assert limiter.allows("j", "Unschedulable", "no cpu", NOW + REPEAT_INTERVAL)


def test_another_message_waits_a_little():
    limiter = EventLimiter()
    limiter.allows("j", "Unschedulable", "no cpu", NOW)

    assert not limiter.allows("j", "Unschedulable", "no memory", NOW + MOMENT)
    assert limiter.allows("j", "Unschedulable", "no memory", NOW + NEW_MESSAGE_INTERVAL)


def test_messages_that_take_turns_are_not_new_each_time():
    limiter = EventLimiter()
    allowed = 0
    for cycle in range(100):
        for message in ("no cpu", "no memory"):
            allowed += limiter.allows("j", "Unschedulable", message, NOW + cycle * NEW_MESSAGE_INTERVAL)

    assert allowed == 2


def test_other_reasons_and_other_jobs_do_not_wait():
    limiter = EventLimiter()
    limiter.allows("j", "Unschedulable", "no cpu", NOW)

    assert limiter.allows("j", "Evict", "no cpu", NOW)
    assert limiter.allows("k", "Unschedulable", "no cpu", NOW)


def test_what_is_remembered_is_bounded():
    limiter = EventLimiter()
    for n in range(2 * MAX_MESSAGES_PER_REASON):
        assert limiter.allows("j", "Unschedulable", f"{n} nodes", NOW + n * NEW_MESSAGE_INTERVAL)
    limiter.allows("k", "Unschedulable", "no cpu", NOW)

    limiter.keep({"k"})

    assert len(limiter) == 1
