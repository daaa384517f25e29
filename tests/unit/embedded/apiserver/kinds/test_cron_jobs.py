"""Kubernetes' own CronJobs: what is refused, and at which field."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.api.scheme import BUILT_IN
from volcano.embedded.apiserver.kinds.strategy_table import strategy_for

CRON_JOBS = strategy_for(next(row for row in BUILT_IN if (row.group, row.plural) == ("batch", "cronjobs")))
TEMPLATE = {"spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "b"}]}}


def cron_job(name: str = "c", **spec: Any) -> dict[str, Any]:
    body = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": {"template": TEMPLATE}}, **spec}
    return {"metadata": {"name": name}, "spec": body}


def refusals(obj: dict[str, Any]) -> list[str]:
    return [str(error) for error in CRON_JOBS.validate(obj)]


@pytest.mark.parametrize("schedule", ["*/5 * * * *", "@daily", "@every 1h30m", "0 0 1 1 *"])
def test_schedules_that_can_be_read_are_accepted(schedule: str):
    assert refusals(cron_job(schedule=schedule, timeZone="Europe/Berlin")) == []


@pytest.mark.parametrize(
    ("spec", "start"),
    [
        ({"schedule": ""}, "spec.schedule: Required value"),
        ({"schedule": "every day"}, 'spec.schedule: Invalid value: "every day": '),
        ({"schedule": "TZ=UTC 0 0 * * *"}, 'spec.schedule: Invalid value: "TZ=UTC 0 0 * * *": cannot use TZ or CRON_TZ'),
        ({"timeZone": "Mars/Olympus"}, 'spec.timeZone: Invalid value: "Mars/Olympus": unknown time zone Mars/Olympus'),
        ({"timeZone": "Local"}, 'spec.timeZone: Invalid value: "Local": timeZone must be an explicit time zone'),
        ({"timeZone": ""}, 'spec.timeZone: Invalid value: "": timeZone must be nil or non-empty string'),
        ({"failedJobsHistoryLimit": -1}, "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_at_its_field(spec: dict[str, Any], start: str):
    found = refusals(cron_job(**spec))

    assert len(found) == 1 and found[0].startswith(start)


def test_a_schedule_of_a_megabyte_is_refused_in_a_short_sentence():
    found = refusals(cron_job(schedule="1," * 600_000 + "1 * * * *"))

    assert len(found) == 1 and found[0].startswith("spec.schedule: Invalid value: ") and len(found[0]) < 500
    assert "over the limit of 1024" in found[0]


def test_the_name_leaves_room_for_the_names_of_jobs():
    assert refusals(cron_job("x" * 52)) == []
    assert refusals(cron_job("x" * 53))[0].endswith("must be no more than 52 characters")


def test_a_schedule_that_was_accepted_before_does_not_prevent_other_changes():
    old = cron_job(schedule="1," * 600_000)

    assert list(CRON_JOBS.validate_update(cron_job(schedule=old["spec"]["schedule"], suspend=True), old)) == []
    assert len(CRON_JOBS.validate_update(cron_job(schedule="x"), old)) == 1
