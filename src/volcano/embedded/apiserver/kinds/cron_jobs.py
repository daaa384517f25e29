"""Kubernetes' own CronJobs: a schedule and a time zone that can be read, and a name short enough for its Jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from volcano.api import field_errors as says
from volcano.api import names
from volcano.api.cron.schedule import MAX_CRON_NAME_LENGTH, CronError, load_zone, parse_schedule
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.workloads import RunsToCompletion

MAX_SHOWN_CHARACTERS: Final = 200
"""Of a wrong schedule in the error."""


class CronJobs(RunsToCompletion):
    template_path = ("spec", "jobTemplate", "spec", "template")
    not_negative = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")

    def validate(self, obj: JSON) -> Sequence[FieldError]:
        name, spec = obj["metadata"].get("name") or "", obj.get("spec") or {}
        errors = [*super().validate(obj), *_schedule_errors(spec.get("schedule")), *_zone_errors(spec.get("timeZone"))]
        if names.byte_length(name) > MAX_CRON_NAME_LENGTH:
            errors.append(
                says.invalid("metadata.name", name, f"must be no more than {MAX_CRON_NAME_LENGTH} characters")
            )
        return errors

    def validate_update(self, obj: JSON, old: JSON) -> Sequence[FieldError]:
        """A schedule and a name that were accepted once do not prevent other changes."""
        spec, before = obj.get("spec") or {}, old.get("spec") or {}
        errors = [*super().validate(obj)]
        if spec.get("schedule") != before.get("schedule"):
            errors += _schedule_errors(spec.get("schedule"))
        if spec.get("timeZone") != before.get("timeZone"):
            errors += _zone_errors(spec.get("timeZone"))
        return errors


def _schedule_errors(schedule: Any) -> list[FieldError]:
    if not schedule or not isinstance(schedule, str):
        return [says.required("spec.schedule")]
    shown = schedule[:MAX_SHOWN_CHARACTERS]
    if "TZ" in shown:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return [says.invalid("spec.schedule", shown, detail)]
    try:
        parse_schedule(schedule)
    except CronError as error:
        return [says.invalid("spec.schedule", shown, str(error))]
    return []


def _zone_errors(zone: Any) -> list[FieldError]:
    if zone is None or not isinstance(zone, str):
        return []
    shown = zone[:MAX_SHOWN_CHARACTERS]
    if not zone:
        return [says.invalid("spec.timeZone", zone, "timeZone must be nil or non-empty string")]
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [says.invalid("spec.timeZone", zone, detail)]
    if load_zone(zone) is None:
        return [says.invalid("spec.timeZone", shown, f"unknown time zone {shown}")]
    return []
