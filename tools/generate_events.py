"""Write docs/reference/events.md: every reason of an Event, with its kinds, its component and its meaning.

python tools/generate_events.py           write the page
python tools/generate_events.py --check   fail if the page is not up to date
"""

from __future__ import annotations

import sys
from pathlib import Path

from generated_page import write_or_check

from volcano.api.event_reasons import EVENT_SOURCES

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "events.md"
INTRO = """\
# Events

Generated from `volcano/api/event_reasons.py` by `tools/generate_events.py`. Components write no Event with another
reason. `kubectl get events` shows them; an Event that repeats raises its count and is written every ten seconds
at most.
Components marked *embedded* run only in `volcano up` and `volcano agent`; on a real cluster Kubernetes' own write
theirs.
"""


def page() -> str:
    lines = [INTRO]
    for source in EVENT_SOURCES:
        lines += [f"## {source.component.capitalize()}", "", "| reason | type | about | meaning |", "|---|---|---|---|"]
        for each in source.reasons:
            kind = "Warning" if each.is_warning else "Normal"
            lines.append(f"| {each.reason} | {kind} | {', '.join(each.kinds)} | {each.meaning} |")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    sys.exit(write_or_check(PAGE, page()))
