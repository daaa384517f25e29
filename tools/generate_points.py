"""Write docs/reference/points.md: every extension point with its signature, purpose, switch and rule, from the table.

python tools/generate_points.py           write the page
python tools/generate_points.py --check   fail if the page is not up to date
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

from generated_page import write_or_check

from volcano.scheduler.framework.config import OFF_BY_DEFAULT
from volcano.scheduler.framework.contract import signature_text
from volcano.scheduler.framework.points import SECTIONS, UNASKED, UNASKED_SWITCHES, Point, Section

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "points.md"
INTRO = f"""\
# Extension points

Generated from `volcano/scheduler/framework/points.py` by `tools/generate_points.py`.

An extension point is a question that the scheduler asks its plugins. A plugin answers it by having a method of that
name. Plugins are asked tier by tier and, within a tier, in configured order; only those whose switch in
volcano-scheduler.conf is on take part. Switches are on unless the configuration turns them off, except
{" and ".join(f"`{switch}`" for switch in sorted(OFF_BY_DEFAULT))}, which are off.

The types are in `volcano.scheduler.model` (`Job`, `SubJob`, `Task`, `Queue`, `Node`, `Domain`),
`volcano.scheduler.framework.answers` (`Vote`, `Refusal`, `Cause`, `BatchScore`) and `volcano.scheduler.core`
(`NodeView`, `Column`). The names of parameters are free. A method of another name, or with other parameters, is an
error when the class is defined.
"""
UNASKED_INTRO = """\
## Points of Volcano that do not exist here

No action asks them, so a plugin that defines one is refused. A configuration may have their switches, which the
linter reports as without effect.
"""


def page() -> str:
    lines = [INTRO]
    for section in SECTIONS:
        lines += _section(section)
    lines += [UNASKED_INTRO, "| Point | Switch | Reason |\n|---|---|---|"]
    switches = {volcano: switch for switch, volcano in UNASKED_SWITCHES.items()}
    for volcano, reason in UNASKED.items():
        switch = f"`{switches[volcano]}`" if volcano in switches else "shared with other points"
        lines.append(f"| {volcano} | {switch} | {reason} |")
    return "\n".join(lines).rstrip() + "\n"


def _section(section: Section) -> Iterator[str]:
    yield f"## {section.title}\n"
    if section.introduction:
        yield section.introduction + "\n"
    for point in section.points:
        yield from _point(point)


def _point(point: Point) -> Iterator[str]:
    signature = signature_text(getattr(point.protocol, point.name)).replace("(self, ", "(", 1)
    yield f"### `{signature}`\n"
    yield _prose(point.protocol) + "\n"
    yield f"- Answers: {_prose(point.combine)}"
    switches = " or ".join(f"`{switch}`" for switch in point.switches)
    yield f"- Switch: {switches or 'none, it is always asked'}"
    yield f"- In Volcano: {point.volcano}\n"


def _prose(documented: object) -> str:
    """The docstring with each paragraph in one line."""
    text = inspect.getdoc(documented) or ""
    return " ".join(" ".join(text.split("\n\n")).split())


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
