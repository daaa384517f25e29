"""/cronjobs/validate: schedules, time zones and names of CronJobs."""

import pytest
from admission_builders import refusal


def a_cronjob(schedule="*/5 * * * *", name="c", **spec):
    return {"kind": "CronJob", "metadata": {"name": name, "namespace": "ns"}, "spec": {"schedule": schedule, **spec}}


@pytest.mark.parametrize("schedule", ["* * * * *", "@daily", "@every 1h30m", "0 0 ? * mon-fri", "0 0 1,15 jan-jun *"])
def test_a_good_schedule_is_admitted(schedule):
    assert refusal(a_cronjob(schedule)) == ""


@pytest.mark.parametrize(
    ("schedule", "fragment"),
    [
        ("", "Required value"),
        ("TZ=UTC * * * * *", "use timeZone instead"),
        ("CRON_TZ=Asia/Tokyo 0 5 * * *", "use timeZone instead"),
        ("* * * *", "expected exactly 5 fields, found 4"),
        ("* * * * * *", "expected exactly 5 fields, found 6"),
        ("60 * * * *", "end of range (60) above maximum (59)"),
        ("* * * * 7", "end of range (7) above maximum (6)"),
        ("@fortnightly", "unrecognized descriptor"),
        ("@every soon", "failed to parse duration"),
        ("hourly", "expected exactly 5 fields"),
    ],
)
def test_a_bad_schedule_gets_its_error(schedule, fragment):
    message = refusal(a_cronjob(schedule))

    assert message.startswith("spec.schedule: ")
    assert fragment in message


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+5"])
def test_a_known_zone_is_admitted(zone):
    assert refusal(a_cronjob(timeZone=zone)) == ""


@pytest.mark.parametrize(
    "zone",
    [
        "",
        "Local",
        "local",
        "LOCAL",
        "Nowhere/Land",
        ".",
        "..",
        "Europe/../UTC",
        "-UTC",
        "Europe/-x",
        "Europe//Berlin",
        "a" * 15,
        "Eu rope/x",
        "/etc/passwd",
    ],
)
def test_a_bad_zone_is_refused(zone):
    assert refusal(a_cronjob(timeZone=zone)).startswith("spec.timeZone: ")


def test_names_leave_room_for_the_minute():
    assert refusal(a_cronjob(name="c" * 52)) == ""
    assert "must be no more than 52 characters" in refusal(a_cronjob(name="c" * 53))


def test_a_name_must_be_a_name():
    assert "metadata.name" in refusal(a_cronjob(name="-c"))


def test_problems_of_the_spec_come_before_those_of_the_name():
    message = refusal(a_cronjob("", name="-c"))

    assert message.index("spec.schedule") < message.index("metadata.name")
    assert "; " in message


def test_a_cronjob_is_checked_on_update_too_and_its_template_is_not():
    good = a_cronjob(jobTemplate={"spec": {"tasks": []}})

    assert refusal(good, a_cronjob()) == ""
    assert "spec.schedule" in refusal(a_cronjob("bad"), a_cronjob())
