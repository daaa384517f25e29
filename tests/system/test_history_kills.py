"""kill -9 of `volcano up` and of `volcano history` under load: every job is recorded once, with its end."""

from __future__ import annotations

import random

import pytest

from tests.campaigns.history_kills import campaign

pytestmark = [pytest.mark.slow, pytest.mark.timeout(420)]


@pytest.mark.parametrize("recorder", [False, True], ids=["up", "history"])
def test_every_job_is_recorded_once_with_its_end(tmp_path, recorder: bool):
    problems, jobs = campaign(tmp_path, 3, random.Random(7), recorder=recorder)

    assert problems == []
    assert jobs > 3
