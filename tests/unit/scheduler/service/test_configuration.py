"""Configurations offered, plugins found, and what `volcano scheduler --check-conf` says."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from volcano.app.scheduler_command import scheduler_command, settings_from
from volcano.scheduler.service.configuration import ConfigMapKey, Configuration
from volcano.scheduler.service.registry import PluginError, load_registry

PLUGIN = '''
"""evenodd: prefers nodes whose name ends in an even digit."""
import numpy as np
from volcano.scheduler.framework.plugin import Plugin


class EvenNodes(Plugin):
    argument_names = frozenset({"weight"})

    def node_score(self, task, nodes):
        weight = self.arguments.integer("weight", 1)
        return np.array([100.0 * weight * (node.name[-1] in "02468") for node in nodes.nodes])
'''


def test_a_good_text_is_in_force_and_wakes():
    woken = []
    configuration = Configuration(load_registry(), lambda: woken.append(True))

    assert configuration.offer("actions: allocate\ntiers: []", "test")
    assert configuration.current.actions == ("allocate",)
    assert woken == [True]


@pytest.mark.parametrize("text", [None, "", "actions: fly", "- a list", "actions: allocate\ntiers: 3", "{"])
def test_a_bad_text_changes_nothing_but_what_is_said(text):
    configuration = Configuration(load_registry())
    before = configuration.current

    assert not configuration.offer(text, "test")
    assert configuration.current is before
    assert configuration.problem.startswith("test: ")


def test_a_problem_is_over_with_the_next_good_text():
    configuration = Configuration(load_registry())
    configuration.offer("actions: fly", "test")

    configuration.offer("actions: allocate\ntiers: []", "test")

    assert configuration.problem == ""


@pytest.mark.parametrize("text", ["a", "a/b", "a:c", "/b:c", "a/:c", "a/b:"])
def test_a_configmap_is_named_in_full(text):
    with pytest.raises(ValueError, match="NAMESPACE/NAME:KEY"):
        ConfigMapKey.parse(text)


def test_a_directory_of_plugins_is_found_by_file_name(tmp_path):
    (tmp_path / "evenodd.py").write_text(PLUGIN)
    (tmp_path / "_private.py").write_text("raise SystemError")

    registry = load_registry(str(tmp_path))

    assert registry.plugins["evenodd"].name == "evenodd"
    assert "gang" in registry.plugins


@pytest.mark.parametrize("text", ["1/0", "x = 1", PLUGIN.replace("node_score", "node_rank")])
def test_a_plugin_that_cannot_be_loaded_says_which_file(tmp_path, text):
    (tmp_path / "broken.py").write_text(text)

    with pytest.raises(PluginError, match=r"broken\.py"):
        load_registry(str(tmp_path))


def checked(tmp_path, text, *more):
    path = tmp_path / "volcano-scheduler.conf"
    path.write_text(text)
    return CliRunner().invoke(scheduler_command, ["--check-conf", str(path), *more])


def test_check_conf_is_content_with_a_good_file(tmp_path):
    good = "actions: enqueue, allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: binpack}]"

    result = checked(tmp_path, good)

    assert result.exit_code == 0, result.output
    assert "fine" in result.output


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("actions: fly", "failed to find Action fly"),
        ("actions: allocate\ntiers:\n- plugins: [{name: gangs}]", "gangs"),
        ("actions: allocate\ntiers:\n- plugins: [{name: binpack, arguments: {binpack.wait: 1}}]", "binpack.wait"),
        ("actions: allocate\ntiers:\n- plugins: [{name: proportion}, {name: capacity}]", "capacity"),
    ],
)
def test_check_conf_names_what_will_not_work(tmp_path, text, word):
    result = checked(tmp_path, text)

    assert result.exit_code == 1
    assert word in result.output


def test_check_conf_knows_the_plugins_of_a_directory(tmp_path):
    plugins = tmp_path / "plugins"
    plugins.mkdir()
    (plugins / "evenodd.py").write_text(PLUGIN)
    text = "actions: allocate\ntiers:\n- plugins: [{name: gang}, {name: predicates}, {name: evenodd}]"

    assert checked(tmp_path, text, "--plugins-dir", str(plugins)).exit_code == 0
    assert checked(tmp_path, text).exit_code == 1


def test_every_flag_of_the_scheduler_is_understood():
    context = scheduler_command.make_context(
        "scheduler",
        [
            "--node-selector=pool:a,pool:b",
            "--feature-gates=SchedulingGatesQueueAdmission=true",
            "--minimum-feasible-nodes=7",
            "--adopt-plain-pods",
        ],
    )

    settings = settings_from(context.params)

    assert settings.node_selector == (("pool", "a"), ("pool", "b"))
    assert settings.admits_by_gate
    assert settings.scheduler_names == ("volcano",)


def test_the_example_plugin_is_found_by_the_name_its_page_gives_it():
    examples = Path(__file__).resolve().parents[4] / "examples" / "plugins"

    assert load_registry(str(examples)).plugins["night-shift"].name == "night-shift"
