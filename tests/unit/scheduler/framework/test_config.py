"""volcano-scheduler.conf: defaults, quirks, errors, and what the linter says."""

from __future__ import annotations

import pytest

from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.framework.arguments import Arguments
from volcano.scheduler.framework.config import InvalidConfig, default_config, parse_config
from volcano.scheduler.framework.lint import lint
from volcano.scheduler.plugins import PLUGINS

CONF = """
actions: " enqueue ,allocate"
unknown: ignored
tiers:
- plugins:
  - name: gang
    enablePreemptable: false
    enabledClusterOrder: true
  - name: nosuch
configurations:
- name: allocate
  arguments: {predicateErrorCacheEnable: false}
- name: allocate
  arguments: {predicateErrorCacheEnable: true}
metrics: {type: prometheus, address: "http://x"}
"""


def test_the_whole_format_is_read() -> None:
    config = parse_config(CONF, known_actions=ACTIONS)

    (gang, nosuch), *_ = config.tiers
    assert config.actions == ("enqueue", "allocate")
    assert (gang.is_on("enablePreemptable"), gang.is_on("enableJobOrder")) == (False, True)
    assert (gang.is_on("enabledClusterOrder"), nosuch.is_on("enabledClusterOrder")) == (True, False)
    assert not gang.hierarchy
    assert config.arguments_of("allocate").flag("predicateErrorCacheEnable", True) is False
    assert config.metrics == {"type": "prometheus", "address": "http://x"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("actions: ''", "failed to find Action"),
        ("actions: nonsense", "failed to find Action nonsense"),
        ("- a", "not a map"),
        ("actions: [", "not YAML"),
        ("actions: allocate\ntiers: {}", "tiers is not a list"),
        ("actions: allocate\ntiers: [{plugins: [{}]}]", "needs a name"),
        ("actions: allocate\ntiers: [{plugins: [{name: gang, enableJobOrder: maybe}]}]", "not a boolean"),
        (
            "actions: allocate\ntiers: [{plugins: [{name: drf, enableHierarchy: true}, {name: proportion}]}]",
            "proportion and drf with hierarchy enabled conflicts",
        ),
    ],
)
def test_what_is_no_configuration_is_refused_with_the_reason(text: str, message: str) -> None:
    with pytest.raises(InvalidConfig, match=message):
        parse_config(text, known_actions=ACTIONS)


def test_the_same_pair_in_two_tiers_passes() -> None:
    text = (
        "actions: allocate\ntiers: [{plugins: [{name: drf, enableHierarchy: true}]}, {plugins: [{name: proportion}]}]"
    )

    assert parse_config(text, known_actions=ACTIONS).plugin_names == ("drf", "proportion")


def test_the_built_in_configuration_is_without_complaint() -> None:
    config = default_config(ACTIONS)

    assert config.actions == ("enqueue", "allocate", "backfill")
    assert lint(config, PLUGINS) == []


def test_the_linter_names_what_will_not_work() -> None:
    text = """
actions: allocate, enqueue
tiers:
- plugins:
  - {name: gang, arguments: {size: 3}}
  - {name: proportion}
  - {name: capacity}
  - {name: nosuch}
  - {name: predicates}
configurations:
- {name: preempt, arguments: {odd: 1}}
"""

    found = lint(parse_config(text, known_actions=ACTIONS), PLUGINS)

    assert found == [
        "tier 1: plugin gang knows no argument size",
        "tier 1: no plugin is called nosuch; it is left out",
        "configurations: preempt is not among the actions",
        "configurations: action preempt knows no argument odd",
        "proportion and capacity cannot both say what queues deserve; capacity is left out",
        "action enqueue comes after allocate: what it lets in waits for the next cycle",
    ]


def test_a_switch_of_a_point_that_does_not_exist_is_accepted_with_a_warning() -> None:
    text = """
actions: allocate
tiers:
- plugins: [{name: gang, enableTargetJob: true, enabledClusterOrder: true}, {name: predicates, enableReservedNodes: false}]
"""

    found = lint(parse_config(text, known_actions=ACTIONS), PLUGINS)

    assert found == [
        "tier 1: enableTargetJob of plugin gang has no effect: Volcano's TargetJob does not exist here"
        " (no action elects a job)",
        "tier 1: enabledClusterOrder of plugin gang has no effect: Volcano's ClusterOrder does not exist here"
        " (no action chooses among clusters)",
        "tier 1: enableReservedNodes of plugin predicates has no effect: Volcano's ReservedNodes does not exist here"
        " (no action reserves nodes)",
    ]


def test_arguments_of_the_wrong_type_count_as_absent() -> None:
    arguments = Arguments({"i": "3", "f": 2, "b": "T", "nb": "yes", "s": 5, "d": "90s", "flag": True})

    assert arguments.integer("i", 7) == 7
    assert arguments.integer("flag", 7) == 7
    assert arguments.number("f", 0.5) == 2.0
    assert (arguments.flag("b", False), arguments.flag("nb", False)) == (True, False)
    assert arguments.text("s", "none") == "none"
    assert arguments.duration("d").total_seconds() == 90  # type: ignore[union-attr]
