"""docs/reference/events.md is what the closed list says, and components write no other reasons."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

from volcano.api.event_reasons import EVENT_REASONS, EVENT_SOURCES

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "volcano"
WITH_REASONS = {
    "Record", "EmitEvent", "Note", "Notice", "Problem", "BadSchedule", "Unprepared", "Unstarted", "NoImage",
    "_warning", "_note", "MetricUnavailable",
}  # fmt: skip
REASON = re.compile(r"[A-Z][a-z]+[A-Za-z]*")
NOT_REASONS = {"Normal", "Warning"}


def reasons_in_code() -> dict[str, str]:
    """Words that look like a reason, among the arguments of the calls that carry one; with their file."""
    found = {}
    for path in SOURCE.rglob("*.py"):
        if path.name == "event_reasons.py" or "simulator" in path.relative_to(SOURCE).parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in WITH_REASONS:
                for each in node.args:
                    if isinstance(each, ast.Constant) and isinstance(each.value, str) and REASON.fullmatch(each.value):
                        found[each.value] = f"{path.relative_to(SOURCE)}:{node.lineno}"
    return {reason: place for reason, place in found.items() if reason not in NOT_REASONS}


def test_the_page_of_events_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "tools" / "generate_events.py", "--check"], timeout=60)

    assert done.returncode == 0, "run tools/generate_events.py"


def test_components_write_no_reason_that_is_not_in_the_list():
    found = reasons_in_code()

    assert len(found) > 40
    assert {reason: place for reason, place in found.items() if reason not in EVENT_REASONS} == {}


def test_every_reason_in_the_list_is_used_somewhere():
    text = "\n".join(path.read_text() for path in SOURCE.rglob("*.py") if path.name != "event_reasons.py")
    computed = {"FailedGetResourceMetric", "FailedGetContainerResourceMetric"}

    assert {reason for reason in EVENT_REASONS - computed if f'"{reason}"' not in text} == set()


def test_a_component_lists_a_reason_once():
    for source in EVENT_SOURCES:
        reasons = [each.reason for each in source.reasons]
        assert len(reasons) == len(set(reasons)), source.component
