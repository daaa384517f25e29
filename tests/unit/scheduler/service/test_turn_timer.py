"""When turns are due: at once after a quiet time, and as rarely as a slow server's answers allow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.scheduler.service.turn_timer import MAX_PAUSE, MIN_PAUSE, MIN_UNSENT_WRITES, TurnTimer


@dataclass
class Counted:
    """A sender's counts, as a test sets them."""

    unsent_writes: int = 0
    answered_writes: int = 0


def pause_after(unsent: int, *, answered: int, since_last_turn: timedelta) -> timedelta:
    """How long the second of two turns is waited for after a change."""

    async def story() -> float:
        clock, writes = VirtualClock(), Counted()
        timer = TurnTimer(clock, timedelta(seconds=1))
        timer.wake()
        await timer.due(lambda: True, writes)
        timer.end(timer.begin())
        await clock.sleep(since_last_turn)
        writes.unsent_writes, writes.answered_writes = unsent, answered
        timer.wake()
        begun = clock.monotonic()
        await timer.due(lambda: True, writes)
        return clock.monotonic() - begun

    return timedelta(seconds=round(run_virtually(story()), 6))


def test_a_change_after_a_quiet_time_is_decided_on_at_once():
    assert pause_after(0, answered=0, since_last_turn=timedelta(seconds=10)) == MIN_PAUSE


def test_a_few_writes_that_are_not_answered_yet_delay_nothing():
    some = MIN_UNSENT_WRITES - 1

    assert pause_after(some, answered=0, since_last_turn=timedelta(milliseconds=100)) == MIN_PAUSE


def test_the_next_turn_comes_when_half_of_the_writes_are_answered():
    """100 ms (98, and the 2 of the first turn) for 10 answers: 50 ms for half of the other 10."""
    pause = pause_after(10, answered=10, since_last_turn=timedelta(milliseconds=98))

    assert pause == timedelta(milliseconds=50)


def test_a_server_that_answers_nothing_is_not_waited_for_longer_than_the_longest_pause():
    assert pause_after(20, answered=0, since_last_turn=timedelta(milliseconds=500)) == MAX_PAUSE


def test_a_server_that_answers_quickly_is_not_waited_for():
    assert pause_after(20, answered=2000, since_last_turn=timedelta(milliseconds=100)) == MIN_PAUSE
