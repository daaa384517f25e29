"""/cronjobs/validate: the schedule, its time zone, and a name short enough for its jobs."""

from __future__ import annotations

import re
from typing import Final

from volcano.admission.review import Reader, ReviewAnswer, Settings, read, refuse_all
from volcano.admission.submitters import submitter_problem
from volcano.api import names
from volcano.api.batch import CronJob
from volcano.api.cron.schedule import MAX_CRON_NAME_LENGTH, CronError, load_zone, parse_schedule
from volcano.machinery.admission import Attributes

_ZONE_PART: Final = re.compile(r"[A-Za-z0-9._+-]{1,14}")


def validate_cronjob(attributes: Attributes, _reader: Reader, settings: Settings) -> ReviewAnswer:
    cronjob = read(CronJob, attributes.object)
    if isinstance(cronjob, ReviewAnswer):
        return cronjob
    problems = _schedule_problems(cronjob.spec.schedule)
    if cronjob.spec.time_zone is not None:
        problems += _zone_problems(cronjob.spec.time_zone)
    problems += [problem for problem in (submitter_problem(attributes, settings),) if problem]
    return refuse_all(problems + _name_problems(cronjob.name or attributes.name))


def _schedule_problems(schedule: str) -> list[str]:
    if not schedule:
        return ["spec.schedule: Required value"]
    if "TZ" in schedule:
        return [
            f"spec.schedule: Invalid value: {schedule!r}: cannot use TZ or CRON_TZ in schedule, use timeZone instead"
        ]
    try:
        parse_schedule(schedule)
    except CronError as error:
        return [f"spec.schedule: Invalid value: {schedule[:200]!r}: {error}"]
    return []


def _zone_problems(zone: str) -> list[str]:
    if not zone:
        return ["spec.timeZone: Invalid value: '': timeZone must be nil or non-empty string"]
    for part in zone.split("/"):
        if part in (".", "..") or part.startswith("-") or not _ZONE_PART.fullmatch(part):
            return [
                f"spec.timeZone: Invalid value: {zone[:200]!r}: unknown timeZone, {part[:50]!r} cannot be in its name"
            ]
    if zone.lower() == "local":
        return [f"spec.timeZone: Invalid value: {zone!r}: timeZone must be an explicit time zone as defined in IANA"]
    if load_zone(zone) is None:
        return [f"spec.timeZone: Invalid value: {zone!r}: unknown timeZone {zone}"]
    return []


def _name_problems(name: str) -> list[str]:
    problems = []
    if names.byte_length(name) > MAX_CRON_NAME_LENGTH:
        problems.append(
            f"metadata.name: Invalid value: {name!r}: must be no more than {MAX_CRON_NAME_LENGTH} characters"
        )
    found = names.qualified_name_problems(name)
    return problems + [f"metadata.name: Invalid value: {name!r}: {problem}" for problem in found]
