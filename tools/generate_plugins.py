"""Write docs/reference/plugins.md: every action and plugin with its arguments, their defaults and its points.

python tools/generate_plugins.py           write the page
python tools/generate_plugins.py --check   fail if the page is not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from generated_page import write_or_check

from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.actions.action_descriptions import ACTION_DESCRIPTIONS
from volcano.scheduler.framework.described_policy import DescribedPolicy
from volcano.scheduler.framework.points import SECTIONS
from volcano.scheduler.plugins import PLUGINS
from volcano.scheduler.plugins.plugin_descriptions import PLUGIN_DESCRIPTIONS

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "plugins.md"
INTRO = """\
# Actions and plugins of volcano-scheduler.conf

Generated from the actions and plugins by `tools/generate_plugins.py`.

Every name that a configuration may use, with its arguments and their defaults. `volcano scheduler --check-conf FILE`
tells what of a configuration will not work as written. How plugins are asked, and the switches that turn single
questions off, is in [points.md](points.md); where behaviour differs from Volcano's, in decisions
[30](../decisions/0030-scheduler-where-volcano-is-not-followed.md) and
[34](../decisions/0034-later-policies-where-volcano-is-not-followed.md).

## Actions

They run in the configured order in every cycle. Their arguments go into `configurations`, an entry
`{name, arguments}` for each action.
"""
PLUGINS_INTRO = """\
## Plugins

They stand below `tiers`, each with its `arguments`. A plugin answers the questions of the scheduler that are listed as
its points.
"""
POINTS = [point.name for section in SECTIONS for point in section.points]


def page() -> str:
    lines = [INTRO]
    for name in ACTIONS:
        lines += [f"### `{name}`\n", *described(ACTION_DESCRIPTIONS[name])]
    lines.append(PLUGINS_INTRO)
    for name in sorted(PLUGINS):
        lines += [f"### `{name}`\n", *described(PLUGIN_DESCRIPTIONS[name]), points_of(name)]
    return "\n".join(lines).rstrip() + "\n"


def described(policy: DescribedPolicy) -> Iterator[str]:
    yield policy.text + "\n"
    if policy.arguments:
        yield "| argument | default | meaning |\n|---|---|---|"
        for name, (default, meaning) in policy.arguments.items():
            yield f"| `{name}` | {f'`{default}`' if default else ''} | {meaning} |"
        yield ""


def points_of(name: str) -> str:
    answered = [f"`{point}`" for point in POINTS if hasattr(PLUGINS[name], point)]
    return f"Points: {', '.join(answered) or 'none; it only prepares the cycle'}.\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
