"""A plugin with a misspelt point or a wrong signature is refused: by mypy, and when it is loaded."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from volcano.app.scheduler_command import scheduler_command
from volcano.scheduler.framework.contract import ContractError
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import Job, Task
from volcano.scheduler.service import registry
from volcano.scheduler.service.registry import PluginError, load_registry

ROOT = Path(__file__).resolve().parents[4]
IMPORTS = """\
from collections.abc import Iterator, Sequence
from typing import Any
from volcano.scheduler.framework.answers import Cause, Refusal, Vote
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import Job, Node, Queue, Task
"""


def plugin_file(folder: Path, method: str, name: str = "night_shift.py") -> Path:
    path = folder / name
    body = textwrap.indent(textwrap.dedent(method).strip(), "    ")
    path.write_text(f"{IMPORTS}\n\nclass NightShift(Plugin):\n{body}\n")
    return path


WRONG = {
    "too few parameters": (
        "def job_order(self, job: Job) -> int:\n    return 0",
        "NightShift.job_order does not fit; expected job_order(self, one: Job, other: Job) -> float:"
        " it cannot be called with 2 positional arguments (too many positional arguments)",
    ),
    "too many parameters": (
        "def job_ready(self, job: Job, really: bool) -> bool:\n    return True",
        "NightShift.job_ready does not fit; expected job_ready(self, job: Job) -> bool:"
        " it cannot be called with 1 positional argument (missing a required argument: 'really')",
    ),
    "keyword-only": (
        "def job_ready(self, *, job: Job) -> bool:\n    return True",
        "NightShift.job_ready does not fit; expected job_ready(self, job: Job) -> bool:"
        " it cannot be called with 1 positional argument",
    ),
    "no self": (
        "def job_ready() -> bool:\n    return True",
        "NightShift.job_ready does not fit; expected job_ready(self, job: Job) -> bool:",
    ),
    "another parameter type": (
        "def allocatable(self, task: Task, queue: Queue) -> bool:\n    return True",
        "NightShift.allocatable does not fit; expected allocatable(self, queue: Queue, task: Task) -> bool:"
        " parameter task is Task and gets Queue",
    ),
    "another answer": (
        "def job_enqueueable(self, job: Job) -> bool:\n    return True",
        "NightShift.job_enqueueable does not fit; expected job_enqueueable(self, job: Job) -> Vote: it returns bool",
    ),
    "None where an answer is needed": (
        "def overused(self, queue: Queue) -> bool | None:\n    return None",
        "NightShift.overused does not fit; expected overused(self, queue: Queue) -> bool: it returns bool | None",
    ),
    "async": (
        "async def job_ready(self, job: Job) -> bool:\n    return True",
        "NightShift.job_ready does not fit; expected job_ready(self, job: Job) -> bool: it must not be async",
    ),
    "a property": (
        "@property\ndef job_ready(self) -> bool:\n    return True",
        "NightShift.job_ready does not fit; expected job_ready(self, job: Job) -> bool: it is not a method",
    ),
    "no method": (
        "job_ready = True",
        "NightShift.job_ready does not fit; expected job_ready(self, job: Job) -> bool: it is not a method",
    ),
    "a method of Plugin": (
        "def open(self) -> None:\n    pass",
        "NightShift.open does not fit; expected open(self, session: Session) -> None:",
    ),
}
NOT_TYPED = {
    "misspelt": (
        "def job_odrer(self, one, other):\n    return 0",
        "NightShift.job_odrer is not an extension point; did you mean job_order(self, one: Job, other: Job) -> float?",
    ),
    "as Volcano spells it": (
        "def JobEnqueueableFn(self, job):\n    return 1",
        "NightShift.JobEnqueueableFn is not an extension point; did you mean job_enqueueable(self, job: Job) -> Vote?",
    ),
    "by Volcano's name": (
        "def predicate(self, task, nodes):\n    return ()",
        "NightShift.predicate is not an extension point;"
        " did you mean node_filter(self, task: Task, nodes: NodeView) -> Iterable[Cause]?",
    ),
    "a public helper": (
        "def whatever(self):\n    pass",
        "NightShift.whatever is not an extension point; a helper's name begins with an underscore; the points are ",
    ),
    "a point that no action asks": (
        "def target_job(self, jobs):\n    pass",
        "NightShift.target_job is not an extension point; Volcano's TargetJob does not exist here: no action",
    ),
    "a generator": (
        "def job_ready(self, job):\n    yield True",
        "NightShift.job_ready does not fit; expected job_ready(self, job: Job) -> bool: it yields instead of returning",
    ),
    "no annotations": (
        "def job_order(self, job):\n    return 0",
        "NightShift.job_order does not fit; expected job_order(self, one: Job, other: Job) -> float:",
    ),
}


@pytest.mark.parametrize(("method", "message"), (WRONG | NOT_TYPED).values(), ids=(WRONG | NOT_TYPED).keys())
def test_a_wrong_plugin_of_a_directory_is_refused_with_file_line_class_point_and_signature(
    tmp_path: Path, method: str, message: str
) -> None:
    path = plugin_file(tmp_path, method)

    with pytest.raises(PluginError) as refused:
        load_registry(str(tmp_path))

    place, _, said = str(refused.value).partition(": ")
    assert re.fullmatch(rf"{re.escape(str(path))}(:\d+)?", place)
    assert said.startswith(message)


def test_the_line_is_that_of_the_method(tmp_path: Path) -> None:
    path = plugin_file(tmp_path, "def job_odrer(self, one, other):\n    return 0")
    line = next(number for number, text in enumerate(path.read_text().splitlines(), 1) if "job_odrer" in text)

    with pytest.raises(PluginError, match=f"night_shift.py:{line}: NightShift.job_odrer"):
        load_registry(str(tmp_path))


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    plugin_file(tmp_path, "def job_odrer(self, one, other):\n    return 0\ndef job_ready(self):\n    return True")

    with pytest.raises(PluginError) as refused:
        load_registry(str(tmp_path))

    assert [line.partition(": ")[2].split()[0] for line in str(refused.value).splitlines()] == [
        "NightShift.job_odrer",
        "NightShift.job_ready",
    ]


def test_a_wrong_plugin_of_an_entry_point_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = plugin_file(tmp_path, "def job_ready(self):\n    return True", "wrong_entry_point_plugin.py")
    entry = EntryPoint("night-shift", "wrong_entry_point_plugin:NightShift", registry.PLUGIN_GROUP)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(registry, "entry_points", lambda group: [entry] if group == registry.PLUGIN_GROUP else [])

    with pytest.raises(PluginError) as refused:
        load_registry()

    assert "entry point night-shift = wrong_entry_point_plugin:NightShift" in str(refused.value)
    assert f"{path}:9: NightShift.job_ready does not fit; expected job_ready(self, job: Job) -> bool" in str(
        refused.value
    )


@pytest.mark.parametrize("command", [["--check-conf", "/dev/null"], []])
def test_the_scheduler_does_not_start_with_a_wrong_plugin(tmp_path: Path, command: list[str]) -> None:
    path = plugin_file(tmp_path, "def job_odrer(self, one, other):\n    return 0")

    result = CliRunner().invoke(scheduler_command, [*command, "--plugins-dir", str(tmp_path)])

    assert result.exit_code == 1
    assert f"Error: {path}:9: NightShift.job_odrer is not an extension point" in result.output


# -- what is right ------------------------------------------------------------------------------------------------------
def test_names_defaults_and_wider_types_of_parameters_are_free() -> None:
    class Free(Plugin):
        def job_order(self, a: object, b: Any, weight: float = 1.0) -> int:
            return 0

        def job_ready(self, *about):  # type: ignore[no-untyped-def]
            return True

        def job_valid(self, job: Job) -> None:
            return None

        @staticmethod
        def overused(queue: object) -> bool:  # type: ignore[override]
            return False

        @classmethod
        def allocatable(cls, queue: Any, task: Task) -> bool:
            return True

        def node_filter(self, task: Task, nodes: Any) -> Iterator[Any]:
            yield from ()

        def _job_odrer(self) -> None:
            """A helper's name begins with an underscore."""

    assert Free.name == ""


def test_annotations_that_cannot_be_resolved_are_not_compared(tmp_path: Path) -> None:
    plugin_file(tmp_path, "def job_ready(self, job: 'OnlyForTypeCheckers') -> bool:\n    return True")

    assert "night-shift" in load_registry(str(tmp_path)).plugins


class Misspelt:
    def job_odrer(self, one: Job, other: Job) -> int:
        return 0


class OneParameter:
    def job_order(self, one: Job) -> int:
        return 0


class Counting:
    def count(self) -> int:
        return 0


@pytest.mark.parametrize("mixin", [Misspelt, OneParameter])
def test_a_mixin_is_held_to_the_contract_too(mixin: type) -> None:
    with pytest.raises(ContractError, match=rf"test_contract.py:\d+: {mixin.__name__}\.job_o"):
        type("Mixed", (mixin, Plugin), {})


def test_a_mixin_may_have_methods_that_resemble_no_point() -> None:
    assert issubclass(type("Mixed", (Counting, Plugin), {}), Plugin)


def test_a_plugin_that_extends_another_is_checked_for_what_it_changes() -> None:
    class One(Plugin):
        def job_ready(self, job: Job) -> bool:
            return True

    with pytest.raises(ContractError, match=r"Other\.job_ready"):
        type("Other", (One,), {"job_ready": lambda self: True})


# -- mypy ---------------------------------------------------------------------------------------------------------------
def test_mypy_refuses_every_wrong_plugin_and_no_right_one(tmp_path: Path) -> None:
    right = {
        "Right": "def job_order(self, mine: Job, theirs: Job) -> int:\n    return 0",
        "AlsoRight": "def preemptable(self, task: Task, candidates: list[Task]) -> list[Task]:\n    return candidates",
        "RightToo": "def node_filter(self, task: Task, nodes: Any) -> Iterator[Cause]:\n    yield from ()",
    }
    wrong = {f"Wrong{number}": method for number, (method, _) in enumerate(WRONG.values())}
    path, lines, classes = tmp_path / "plugins_for_mypy.py", IMPORTS.splitlines(), {}
    for name, method in (right | wrong).items():
        lines.append(f"class {name}(Plugin):")
        lines += textwrap.indent(method, "    ").splitlines()
        classes.update(dict.fromkeys(range(len(lines) - method.count("\n"), len(lines) + 1), name))
    lines.append("Right  # makes the file end with a statement")
    path.write_text("\n".join(lines) + "\n")

    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", str(path)],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "MYPYPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )

    # Only the file's name is compared: out of its cache, mypy may report an equal file of an earlier run.
    errors = [line.split(":") for line in checked.stdout.splitlines() if ": error: " in line]
    assert {Path(file).name for file, *_ in errors} == {path.name}, checked.stdout + checked.stderr
    assert {classes[int(number)] for _, number, *_ in errors} == wrong.keys(), checked.stdout
