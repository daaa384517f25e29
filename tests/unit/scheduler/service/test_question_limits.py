"""Questions to the scheduler: how many one user may ask, and how many may wait."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from volcano.machinery.clock import Clock
from volcano.machinery.transport import User
from volcano.scheduler.service import question_limits
from volcano.scheduler.service.question_limits import QuestionLimits, TooManyQuestions

ANNE, BEN = User("anne"), User("ben")


class StandingClock(Clock):
    """Time passes when the test says so."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


def ask(limits: QuestionLimits, user: User | None) -> None:
    with limits.admitted(user):
        pass


def test_one_who_asks_all_the_time_has_to_wait_and_others_need_not(clock: StandingClock):
    limits = QuestionLimits(clock)
    for _ in range(question_limits.QUESTIONS_AT_ONCE):
        ask(limits, ANNE)

    with pytest.raises(TooManyQuestions, match="anne asks the scheduler more than 10 questions a second") as refused:
        ask(limits, ANNE)
    ask(limits, BEN)

    clock.seconds += refused.value.seconds
    ask(limits, ANNE)


def test_questions_that_wait_are_few_for_one_user_and_bounded_for_all(clock: StandingClock):
    limits = QuestionLimits(clock)
    with ExitStack() as waiting:
        for _ in range(question_limits.MAX_WAITING_QUESTIONS_OF_USER):
            waiting.enter_context(limits.admitted(ANNE))
        with pytest.raises(TooManyQuestions, match="questions of anne wait"):
            ask(limits, ANNE)
        for _ in range(question_limits.MAX_WAITING_QUESTIONS - question_limits.MAX_WAITING_QUESTIONS_OF_USER):
            waiting.enter_context(limits.admitted(None))
        with pytest.raises(TooManyQuestions, match="32 questions wait"):
            ask(limits, BEN)

    ask(limits, ANNE)


def test_an_unknown_number_of_users_takes_a_known_amount_of_memory(clock: StandingClock):
    limits = QuestionLimits(clock)
    for number in range(question_limits.MAX_REMEMBERED_USERS + 50):
        ask(limits, User(f"user-{number}"))

    assert len(limits._paces) == question_limits.MAX_REMEMBERED_USERS
    assert limits._waiting == {}
