"""Every plugin is described, with the arguments that it takes and the defaults that it reads."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.scheduler.framework.arguments import Arguments
from volcano.scheduler.plugins import PLUGINS
from volcano.scheduler.plugins.plugin_descriptions import PLUGIN_DESCRIPTIONS
from volcano.testing.clusters import cluster, gang


def test_every_plugin_is_described() -> None:
    assert set(PLUGIN_DESCRIPTIONS) == set(PLUGINS)


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_the_arguments_are_those_that_the_plugin_takes(name: str) -> None:
    plugin = PLUGINS[name]
    taken = {*(plugin.argument_names or ()), *(f"{prefix}NAME" for prefix in plugin.argument_prefixes)}

    assert set(PLUGIN_DESCRIPTIONS[name].arguments) == taken


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_the_defaults_are_those_that_the_plugin_reads(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    read: dict[str, str] = {}
    for kind in ("integer", "number", "flag", "text"):
        monkeypatch.setattr(Arguments, kind, recording(kind, read))

    cluster(nodes={"n1": "cpu=4"}, jobs={"train": gang(2)}).session(name)

    described = PLUGIN_DESCRIPTIONS[name].arguments
    assert {key: described[key][0] for key in read if key in described} == {
        key: default for key, default in read.items() if key in described
    }


def recording(kind: str, read: dict[str, str]) -> Any:
    reads = getattr(Arguments, kind)

    def record(self: Arguments, key: str, default: Any) -> Any:
        read[key] = (
            str(default).lower() if isinstance(default, bool) else f"{default:g}" if kind == "number" else str(default)
        )
        return reads(self, key, default)

    return record
