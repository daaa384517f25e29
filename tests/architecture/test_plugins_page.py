"""The page of actions and plugins names all there are, with every argument."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.framework.lint import ACTION_ARGUMENTS
from volcano.scheduler.plugins import PLUGINS

PAGE = (Path(__file__).parents[2] / "docs/reference/plugins.md").read_text()
SECTIONS = dict(re.findall(r"^### `([\w-]+)`\n(.*?)(?=^##|\Z)", PAGE, re.M | re.S))


@pytest.mark.parametrize("name", sorted(ACTIONS))
def test_every_action_and_its_arguments_are_on_the_page(name: str) -> None:
    inherited = {"maxDomains", "allowWholeBundle"} if name == "gangreclaim" else set()

    assert not {argument for argument in ACTION_ARGUMENTS[name] - inherited if f"`{argument}`" not in SECTIONS[name]}


@pytest.mark.parametrize("name", sorted(PLUGINS))
def test_every_plugin_and_its_arguments_are_on_the_page(name: str) -> None:
    plugin = PLUGINS[name]
    stated = {*(plugin.argument_names or ()), *(f"{prefix}NAME" for prefix in plugin.argument_prefixes)}

    assert not {argument for argument in stated if f"`{argument}`" not in SECTIONS[name]}


def test_the_page_names_nothing_that_is_not_there() -> None:
    assert set(SECTIONS) == {*ACTIONS, *PLUGINS}
