"""The controller manager's flags and feature gates reach the controllers they are about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import needs
from volcano.api.bus import Command
from volcano.api.core import PriorityClass
from volcano.api.meta import Key
from volcano.app import controllers_command as controller_manager
from volcano.app.component import parse_gates
from volcano.app.controllers_command import controller_manager_command, settings_from, workers_from
from volcano.controllers.service.choice import DEFAULT_CONTROLLERS, UnknownController, is_enabled, parse_controllers
from volcano.controllers.service.gates import GATES
from volcano.controllers.service.manager import make_controllers
from volcano.controllers.service.settings import ControllerSettings
from volcano.machinery.local_zone import local_zone


def flags(*arguments: str) -> dict:
    """As click reads them."""
    return controller_manager_command.make_context("controller-manager", list(arguments)).params


def names(settings: ControllerSettings | None = None, chosen: str = DEFAULT_CONTROLLERS) -> set[str]:
    return {controller.name for controller in make_controllers(parse_controllers(chosen), settings=settings)}


def gated(**gates: bool) -> ControllerSettings:
    return ControllerSettings(gates={**GATES, **gates})


def the(name: str, settings: ControllerSettings):
    (found,) = (each for each in make_controllers(parse_controllers("*"), settings=settings) if each.name == name)
    return found


def test_everything_but_sharding_runs_by_default():
    everything = {"job", "queue", "podgroup", "garbage", "jobflow", "jobtemplate", "cronjob", "hypernode", "colocation"}

    assert names() == everything
    assert names(chosen="*") == everything | {"sharding"}


@pytest.mark.parametrize(
    ("chosen", "on"),
    [
        ([], True),
        (["*"], True),
        (["*", "-job-controller"], False),
        (["-job-controller", "*"], False),
        (["job-controller"], True),
        (["+job-controller"], True),
        (["queue-controller"], False),
    ],
)
def test_a_mention_decides_and_otherwise_the_star(chosen, on):
    assert is_enabled("job-controller", chosen) is on


@pytest.mark.parametrize(
    ("text", "why"), [("*,jobs", "there is no controller"), ("+job-controller,-job-controller", "twice")]
)
def test_a_list_that_cannot_be_meant_is_refused(text, why):
    with pytest.raises(UnknownController, match=why):
        parse_controllers(text)


@pytest.mark.parametrize(("gate", "gone"), [("VolcanoJobSupport", "job"), ("CronVolcanoJobSupport", "cronjob")])
def test_a_gate_turns_a_controller_off(gate, gone):
    assert names() - names(gated(**{gate: False})) == {gone}


def test_without_command_sync_no_controller_looks_at_commands():
    def watchers(settings):
        return {each.name for each in make_controllers(settings=settings) if Command in (*each.wakes_on, *each.reads)}

    assert watchers(gated()) == {"job", "queue"}
    assert watchers(gated(QueueCommandSync=False)) == set()


def test_without_workload_support_only_pods_get_podgroups():
    assert {kind.__name__ for kind in the("podgroup", gated(WorkLoadSupport=False)).wakes_on} == {"Pod"}
    assert len(the("podgroup", gated()).wakes_on) > 1


def test_without_priority_classes_nobody_reads_them():
    assert PriorityClass in the("job", gated()).reads
    assert PriorityClass not in the("job", gated(PriorityClass=False)).reads


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", GATES),
        ("CSIStorage=true", {**GATES, "CSIStorage": True}),
        ("AllAlpha=false,QueueCommandSync=true", {**dict.fromkeys(GATES, False), "QueueCommandSync": True}),
        ("AllBeta=false", GATES),
    ],
)
def test_gates_are_read(text, expected):
    assert parse_gates(text) == expected


@pytest.mark.parametrize(
    ("text", "why"), [("Nonsense=true", "unrecognized feature gate: Nonsense"), ("CSIStorage", "is not Name=true")]
)
def test_gates_that_do_not_exist_or_say_nothing_are_refused(text, why):
    answer = CliRunner().invoke(controller_manager_command, [f"--feature-gates={text}"])

    assert answer.exit_code == 2
    assert why in answer.output


def test_settings_come_from_flags_and_environment():
    given = flags(
        "--max-requeue-num=-1", "--scheduler-name=volcano", "--scheduler-name=other", "--inherit-owner-annotations=false",
        "--feature-gates=QueueCommandSync=false", "--shard-sync-period=2m", "--enable-node-event-trigger=false",
        "--sharding-configmap=mine-sharding-configmap", "--sharding-configmap-namespace=mine",
    )  # fmt: skip
    environment = {"KUBE_POD_NAMESPACE": "mine", "HELM_RELEASE_NAME": "my", "TZ": "Asia/Shanghai"}

    settings = settings_from(given, environment)

    assert settings.max_requeue == -1
    assert settings.scheduler_names == ("volcano", "other")
    assert not settings.inherit_owner_annotations
    assert not settings.has("QueueCommandSync") and settings.has("WorkLoadSupport")
    assert (settings.shard_sync_period, settings.follows_nodes) == (timedelta(minutes=2), False)
    assert settings.sharding_configmap == Key("mine", "mine-sharding-configmap")
    assert settings.controller_configmap == Key("mine", "my-controller-configmap")
    assert str(settings.local_zone) == "Asia/Shanghai"


def test_settings_without_flags_are_the_reference_ones():
    settings = settings_from(flags(), {"TZ": "UTC"})

    assert settings.max_requeue == 15
    assert settings.controller_configmap == Key("volcano-system", "volcano-controller-configmap")
    assert settings.gates == GATES
    assert workers_from(flags()) == {"job": 3, "queue": 5, "podgroup": 5, "garbage": 1, "cronjob": 3}


def test_each_controller_has_its_number_of_workers():
    given = flags("--worker-threads=9", "--worker-threads-for-queue=8", "--worker-threads-for-podgroup=7",
                  "--worker-threads-for-gc=6", "--worker-threads-for-cronjob=4")  # fmt: skip

    assert workers_from(given) == {"job": 9, "queue": 8, "podgroup": 7, "garbage": 6, "cronjob": 4}
    assert set(workers_from(given)) <= names(), "keys are names of controllers"


@pytest.mark.parametrize(
    "flag",
    ["--scheduler-configs=a:b", "--scheduler-configs=a:b:c:d:e:f:g", "--shard-sync-period=0s", "--worker-threads=0"],
)
def test_flags_that_make_no_sense_are_refused(flag, monkeypatch):
    monkeypatch.setattr(controller_manager, "run_component", lambda *_, **__: pytest.fail("was started"))

    answer = CliRunner().invoke(controller_manager_command, ["--controllers=*", flag])

    assert answer.exit_code == 2, answer.output


def test_the_process_zone_is_a_zone_with_its_summer_time():
    zone = local_zone({"TZ": "Europe/Berlin"})

    assert datetime(2026, 1, 1, tzinfo=zone).utcoffset() == timedelta(hours=1)
    assert datetime(2026, 7, 1, tzinfo=zone).utcoffset() == timedelta(hours=2)


def test_without_tz_the_machines_zone_is_taken(tmp_path: Path):
    target = next((each for each in (Path("/usr/share/zoneinfo/Asia/Tokyo"),) if each.exists()), None)
    if target is None:
        pytest.skip(needs.reason("no zoneinfo on this machine", "apt-get install tzdata"))
    (tmp_path / "localtime").symlink_to(target)

    zone = local_zone({}, tmp_path / "localtime")

    assert str(zone) == "Asia/Tokyo"
    assert datetime(2026, 1, 1, tzinfo=zone).utcoffset() == timedelta(hours=9)


@pytest.mark.parametrize("name", ["", "No/Such/Zone", "/no/such/file"])
def test_a_zone_nobody_knows_is_utc(name):
    assert local_zone({"TZ": name}) is UTC


def test_a_machine_without_a_zone_is_utc(tmp_path: Path):
    assert local_zone({}, tmp_path / "localtime") is UTC
