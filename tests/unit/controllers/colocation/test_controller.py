"""Pods know their colocation configuration."""

from __future__ import annotations

from datetime import timedelta

from volcano.api.core import Pod
from volcano.api.topology import ColocationConfiguration
from volcano.controllers.colocation import ColocationController
from volcano.testing.pure_world import START, PureWorld

NAME = "volcano.sh/colocation-config-name"
CONFIG = "volcano.sh/colocation-config"


def a_config(name: str, *, age: int = 0, selector: dict | None = None, **ratios: int) -> dict:
    spec: dict = {"memoryQos": ratios} if ratios else {}
    spec["selector"] = selector if selector is not None else {"matchLabels": {"app": "x"}}
    return {
        "apiVersion": "config.volcano.sh/v1alpha1",
        "kind": "ColocationConfiguration",
        "metadata": {"name": name, "creationTimestamp": (START - timedelta(hours=age)).isoformat()},
        "spec": spec,
    }


def a_pod(app: str = "x", **annotations: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "labels": {"app": app}, "annotations": annotations},
    }


def a_world(*objects: dict) -> PureWorld:
    return PureWorld(*objects, controllers=[ColocationController()]).advance(timedelta(seconds=2))


def annotations(world: PureWorld) -> dict:
    return world.raw(Pod, "p")["metadata"]["annotations"]


def test_a_pod_is_told_its_configuration():
    world = a_world(a_config("c", highRatio=80, lowRatio=0, minRatio=0), a_pod())

    assert annotations(world) == {NAME: "c", CONFIG: '{"memoryQos":{"highRatio":80}}'}


def test_of_several_the_youngest_wins():
    world = a_world(a_config("old", age=2, highRatio=70), a_config("young", highRatio=90), a_pod())

    assert annotations(world)[NAME] == "young"


def test_a_pod_that_none_is_for_is_left_alone():
    world = a_world(a_config("c", highRatio=80), a_pod("y"))

    assert annotations(world) == {}
    assert world.writes == 0


def test_a_pod_that_had_one_is_reset():
    world = a_world(a_config("c", highRatio=80), a_pod())

    world.delete(ColocationConfiguration, "c")
    world.advance(timedelta(seconds=2))

    assert annotations(world) == {CONFIG: "{}"}


def test_labels_and_configurations_may_change():
    world = a_world(a_config("c", highRatio=80), a_pod("y"))

    world.change(Pod, "p", {"metadata": {"labels": {"app": "x"}}})
    world.settle()
    assert annotations(world)[NAME] == "c"

    world.change(ColocationConfiguration, "c", {"spec": {"memoryQos": {"highRatio": 60}}})
    world.advance(timedelta(seconds=2))
    assert annotations(world)[CONFIG] == '{"memoryQos":{"highRatio":60}}'


def test_no_selector_is_for_nobody():
    config = a_config("c", highRatio=80)
    del config["spec"]["selector"]

    assert a_world(config, a_pod()).writes == 0
