"""Test files are found where one looks for them: tests/unit mirrors src/volcano, by folder and by name."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
UNIT = ROOT / "tests" / "unit"
SOURCE = ROOT / "src" / "volcano"
SPANNING = {
    "admission/test_examples.py": "every example passes all rules",
    "api/test_finished_phases.py": "one fact about phases of several kinds",
    "install/test_rights_of_the_reference.py": "our rights against Volcano's",
    "scheduler/actions/test_evicting_actions.py": "preempt and reclaim alike",
    "scheduler/actions/test_gang_actions.py": "gangpreempt and gangreclaim alike",
    "scheduler/core/test_node_columns.py": "the arrays of nodes, which several modules make up",
    "scheduler/plugins/test_job_policies.py": "small plugins about jobs: gang, priority, sla and others",
    "scheduler/plugins/test_kubernetes_answers.py": "predicates and nodeorder against recorded answers",
    "scheduler/plugins/test_queue_policies.py": "plugins about queues: proportion, capacity, drf",
    "scheduler/test_example_plugin.py": "the plugin of docs/writing-a-plugin.md",
    "scheduler/test_invariants.py": "properties of whole cycles",
}
"""Files that test what no single module owns, and what that is."""
MAX_LINES = 800
MAX_POLL_SECONDS = 0.2


def names_of(folder: Path) -> set[str]:
    """Modules and packages of a folder, and the package that it is."""
    return (
        {folder.name}
        | {path.stem for path in folder.glob("*.py")}
        | {path.parent.name for path in folder.glob("*/__init__.py")}
    )


def test_a_unit_test_is_named_after_its_module():
    """test_MODULE.py or test_MODULE_aspect.py, in the folder that mirrors the module's."""
    lost = []
    for path in UNIT.rglob("test_*.py"):
        name = str(path.relative_to(UNIT))
        stem = path.stem.removeprefix("test_")
        modules = names_of(SOURCE / path.parent.relative_to(UNIT))
        is_named = any(stem == module or stem.startswith(f"{module}_") for module in modules)
        if not is_named and name not in SPANNING and not name.startswith("tools/"):
            lost.append(name)

    assert lost == []


def test_the_list_of_spanning_files_is_not_outdated():
    assert [name for name in SPANNING if not (UNIT / name).exists()] == []


def test_no_name_of_a_test_file_says_nothing():
    empty = re.compile(r"test_(small|other|various|misc|more|new|parts|things)(_|$)")

    assert [path.name for path in ROOT.glob("tests/**/test_*.py") if empty.match(path.stem)] == []


def test_no_test_file_is_endless():
    lines = {path: len(path.read_text().splitlines()) for path in ROOT.glob("tests/**/test_*.py")}

    assert {str(path): count for path, count in lines.items() if count > MAX_LINES} == {}


def sleeps(path: Path) -> list[str]:
    """Calls of asyncio.sleep and time.sleep that wait longer than the pause between two looks at a condition."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "sleep":
            continue
        module, given = node.func.value, node.args[0]
        is_real = isinstance(module, ast.Name) and module.id in ("asyncio", "time")
        if is_real and not (isinstance(given, ast.Constant) and given.value <= MAX_POLL_SECONDS):
            found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return found


def test_no_test_sleeps_to_prove_that_nothing_happens():
    assert [place for path in ROOT.glob("tests/**/test_*.py") for place in sleeps(path)] == []
