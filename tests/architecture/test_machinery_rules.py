"""What machinery must not know, and facts that have one owner."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source_trees import source_nodes
from volcano.api.scheme import VOLCANO

SOURCES = Path(__file__).resolve().parents[2] / "src" / "volcano"
MACHINERY = sorted((SOURCES / "machinery").rglob("*.py"))
VOLCANO_KINDS = sorted({row.kind for row in VOLCANO})
EVERYWHERE = sorted(SOURCES.rglob("*.py"))


def ids(path: Path) -> str:
    return str(path.relative_to(SOURCES))


@pytest.mark.parametrize("path", MACHINERY, ids=ids)
def test_machinery_knows_none_of_volcanos_kinds(path: Path):
    kinds = re.compile(rf"\b({'|'.join(VOLCANO_KINDS)})s?\b")
    text = path.read_text()
    named = [number for number, line in enumerate(text.splitlines(), 1) if kinds.search(line)]

    assert named == [], f"{ids(path)} names a kind of Volcano in lines {named}"


def test_rfc_3339_is_written_and_read_in_one_place():
    """The supervisor's logs have nanoseconds, and it is a program of the standard library alone."""
    allowed = {"api/times.py", "embedded/agent/processes/container_log.py"}
    written = [ids(path) for path in EVERYWHERE if "%Y-%m-%dT" in path.read_text()]

    assert set(written) <= allowed


def test_field_errors_are_worded_in_one_place():
    worded = [
        ids(path)
        for path in EVERYWHERE
        for node in source_nodes(path)
        if isinstance(node, ast.FunctionDef)
        and node.name in ("shown", "path_text", "type_invalid")
        and _at_module(node)
    ]

    assert set(worded) <= {"api/field_errors.py", "api/fields.py"}


def _at_module(node: ast.FunctionDef) -> bool:
    return node.col_offset == 0


ERRORS = ("error", "exception", "failure", "refusal", "problem")


def _is_text_of_an_error(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="str"), args=[ast.Name(id=name)]):
            return name in ERRORS
        case ast.Attribute(value=ast.Name(id=name), attr="message"):
            return name in ERRORS
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id=name), attr="args")):
            return name in ERRORS
    return False


def _decides_by_text(node: ast.AST) -> bool:
    match node:
        case ast.Compare(left=left, comparators=others):
            return any(_is_text_of_an_error(each) for each in (left, *others))
        case ast.Call(func=ast.Attribute(value=value, attr="startswith" | "endswith" | "find")):
            return _is_text_of_an_error(value)
    return False


def test_errors_are_told_apart_by_type_and_not_by_their_text():
    found = [
        f"{ids(path)}:{node.lineno}" for path in EVERYWHERE for node in source_nodes(path) if _decides_by_text(node)
    ]

    assert found == []


@pytest.mark.parametrize(
    "text", ['"gone" in str(error)', 'error.message == "gone"', 'str(error).startswith("gone")', 'error.args[0] != "x"']
)
def test_that_search_finds_the_known_shapes(text: str):
    assert any(_decides_by_text(node) for node in ast.walk(ast.parse(text)))
