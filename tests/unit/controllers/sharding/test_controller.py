"""Nodes divided among schedulers."""

from __future__ import annotations

from datetime import timedelta

import pytest

from volcano.api.core import ConfigMap, Node, Pod
from volcano.api.topology import NodeShard
from volcano.controllers.sharding import ShardingController
from volcano.controllers.sharding.settings import SettingsError, from_flags, parse_settings
from volcano.testing.pure_world import PureWorld


def a_node(name: str, **labels: str) -> dict:
    labels = {key.replace("_", "/"): value for key, value in labels.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": {"cpu": "10"}},
    }


def a_load(node: str, cpu: str) -> dict:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"load-{node}"},
        "spec": {"nodeName": node, "containers": [container]},
    }


def a_config(text: str) -> dict:
    metadata = {"name": "volcano-sharding-configmap", "namespace": "volcano-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"sharding.yaml": text}}


def a_world(*objects: dict) -> PureWorld:
    return PureWorld(*objects, controllers=[ShardingController()]).advance(timedelta(seconds=1))


def shards(world: PureWorld) -> dict[str, list[str]]:
    return {shard.name: shard.spec.nodes_desired for shard in world.all(NodeShard)}


def test_busy_nodes_and_idle_ones_go_to_different_schedulers():
    world = a_world(
        a_node("idle"),
        a_node("half"),
        a_node("busy"),
        a_node("between"),
        a_load("half", "5"),
        a_load("busy", "8"),
        a_load("between", "6500m"),
    )

    assert shards(world) == {"volcano": ["half", "idle"], "agent-scheduler": ["busy"]}


def test_shards_follow_the_load_each_period():
    world = a_world(a_node("a"), a_node("b"))
    assert shards(world)["volcano"] == ["a", "b"]

    world.put(a_load("b", "9"))
    world.advance(timedelta(seconds=61))

    assert shards(world) == {"volcano": ["a"], "agent-scheduler": ["b"]}


def test_a_node_that_comes_is_given_soon():
    world = a_world(a_node("a"))

    world.put(a_node("b"))
    world.advance(timedelta(milliseconds=300))

    assert shards(world)["volcano"] == ["a", "b"]


def test_a_deleted_shard_comes_back_and_a_strange_one_goes():
    world = a_world(a_node("a"))

    world.delete(NodeShard, "volcano")
    world.put(
        {
            "apiVersion": "shard.volcano.sh/v1alpha1",
            "kind": "NodeShard",
            "metadata": {"name": "strange"},
            "spec": {"nodesDesired": []},
        }
    )
    world.settle()

    assert set(shards(world)) == {"volcano", "agent-scheduler"}


CONFIG = """
schedulerConfigs:
- name: first
  policies:
  - name: warmup
    weight: 2
  - name: node-limit
    arguments: {maxNodes: 1}
- name: second
  policies:
  - name: allocation-rate
    arguments: {minCPUUtil: 0, maxCPUUtil: 1}
shardSyncPeriod: 30s
"""


def test_the_configmap_wins_over_the_flags():
    world = a_world(a_config(CONFIG), a_node("a"), a_node("warm", **{"node.volcano.sh_warmup": "true"}))

    assert shards(world) == {"first": ["warm"], "second": ["a"]}


def test_an_unreadable_configuration_changes_nothing():
    world = a_world(a_config(CONFIG), a_node("a"), a_node("b"))
    before = shards(world)

    world.change(
        ConfigMap, "volcano-sharding-configmap", {"data": {"sharding.yaml": "schedulerConfigs: []"}}, "volcano-system"
    )
    world.delete(Node, "a")
    world.advance(timedelta(minutes=5))

    assert shards(world) == before
    assert "InvalidConfiguration" in world.reasons()


def test_a_small_change_of_a_large_shard_is_not_written():
    nodes = [a_node(f"n{i:02}") for i in range(40)]
    world = a_world(*nodes)
    writes = world.writes

    world.put(a_load("n00", "9"))
    world.put(a_node("n40"))
    world.delete(Pod, "load-n00")
    world.advance(timedelta(seconds=1))

    assert len(shards(world)["volcano"]) == 41
    assert world.writes == writes + 1


@pytest.mark.parametrize(
    "text",
    [
        "]",
        "schedulerConfigs: []",
        "schedulerConfigs: [{type: volcano}]",
        "schedulerConfigs: [{name: a, minNodes: 5, maxNodes: 2}]",
        "schedulerConfigs: [{name: a, cpuUtilizationMax: 3}]",
        "schedulerConfigs: [{name: a, policies: [{name: magic}]}]",
        "schedulerConfigs: [{name: a, policies: [{name: warmup, weight: -1}]}]",
        "schedulerConfigs: [{name: a, policies: [{name: warmup, arguments: {maxNodes: 3}}]}]",
        "{schedulerConfigs: [{name: a}], shardSyncPeriod: soon}",
    ],
)
def test_what_cannot_be_used_is_refused(text: str):
    with pytest.raises(SettingsError):
        parse_settings(text, from_flags())
