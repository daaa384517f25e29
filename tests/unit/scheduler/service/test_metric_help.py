"""Every metric of the scheduler says what it measures."""

from __future__ import annotations

from volcano.scheduler.service.metric_help import HELP
from volcano.scheduler.service.metrics import COUNTERS, GAUGES, HISTOGRAMS, RISING


def test_every_metric_has_a_text_that_is_more_than_its_name():
    names = {*GAUGES, *COUNTERS, *HISTOGRAMS, *RISING}

    assert names == set(HELP)
    assert [name for name, text in HELP.items() if text.lower().rstrip(".") == name.replace("_", " ")] == []
