"""/jobflows/validate, /cronjobs/validate and /hypernodes/validate."""

import pytest
from admission_builders import refusal


# -- JobFlow ------------------------------------------------------------------------------------------------------
def a_flow(**steps):
    flows = [
        {"name": name, "dependsOn": {"targets": targets}} if targets else {"name": name}
        for name, targets in steps.items()
    ]
    return {"kind": "JobFlow", "metadata": {"name": "f", "namespace": "ns"}, "spec": {"flows": flows}}


@pytest.mark.parametrize(
    "flow",
    [
        a_flow(),
        {"kind": "JobFlow", "metadata": {"name": "f"}},
        a_flow(a=[], b=["a"], c=["a"], d=["b", "c"]),
        a_flow(a=["b"], b=[]),
    ],
)
def test_a_dag_is_admitted(flow):
    assert refusal(flow) == ""


def test_a_cycle_is_spelled_out():
    message = refusal(a_flow(start=["a"], a=["b"], b=["c"], c=["a"]))

    assert "jobflow Flow is not DAG" in message
    assert "a -> b -> c -> a" in message


def test_a_step_that_waits_for_itself_is_a_cycle():
    assert "jobflow Flow is not DAG" in refusal(a_flow(a=["a"]))


def test_an_unknown_target_is_named():
    message = refusal(a_flow(a=["ghost"]))

    assert "jobflow Flow is not DAG" in message
    assert "vertex is not defined: ghost" in message


def test_of_two_steps_of_a_name_the_later_counts():
    flow = a_flow(a=["ghost"])
    flow["spec"]["flows"].append({"name": "a"})

    assert refusal(flow) == ""


def test_a_flow_is_checked_on_update_too():
    assert "not DAG" in refusal(a_flow(a=["a"]), a_flow(a=[]))


# -- CronJob ------------------------------------------------------------------------------------------------------
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


# -- HyperNode ----------------------------------------------------------------------------------------------------
def a_hypernode(*members):
    return {"kind": "HyperNode", "metadata": {"name": "h"}, "spec": {"tier": 1, "members": list(members)}}


def matching(pattern):
    return {"type": "Node", "selector": {"regexMatch": {"pattern": pattern}}}


EXACT = {"type": "Node", "selector": {"exactMatch": {"name": "node-1"}}}


@pytest.mark.parametrize(
    "members", [[EXACT], [matching("^node-[0-9]+$")], [matching("(a|b)+?")], [EXACT, matching(r"n\.x\\1")]]
)
def test_members_that_can_be_found_are_admitted(members):
    assert refusal(a_hypernode(*members)) == ""


def test_a_hypernode_without_members_is_refused():
    assert "member must have at least one member" in refusal(a_hypernode())
    assert "members" in refusal({"kind": "HyperNode", "metadata": {"name": "h"}, "spec": {"tier": 1}})


@pytest.mark.parametrize("pattern", ["node-[", "(", "*a", "a{2,1}", "(?=a)b", "(?<!a)b", r"(a)\1", "a++", "(?P=n)"])
def test_a_pattern_that_does_not_compile_is_refused_where_it_stands(pattern):
    message = refusal(a_hypernode(EXACT, matching(pattern)))

    assert "member regexMatch pattern is invalid" in message
    assert "spec.members[1].selector.regexMatch.pattern" in message
