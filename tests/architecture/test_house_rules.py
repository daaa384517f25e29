"""What a linter does not see: names, docstrings, documented commands."""

import ast
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.architecture.source_trees import source_nodes, source_tree
from volcano.app.main import COMMANDS, volcano_command

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "src" / "volcano").rglob("*.py"))
BANNED_MODULES = {"util", "utils", "helper", "helpers", "common", "misc", "base"}
BANNED_WORDS = re.compile(r"(Info|Manager|Helper|Util|Utils|Common|Impl|Fn|New)(?=[A-Z]|$)|^Base|Data$")


def ids(path):
    return str(path.relative_to(ROOT / "src"))


@pytest.mark.parametrize("path", SOURCES, ids=ids)
def test_every_module_says_what_it_owns(path):
    assert ast.get_docstring(source_tree(path)), f"{path} opens without a docstring"


def test_no_module_has_a_name_that_says_nothing():
    assert [path for path in SOURCES if path.stem in BANNED_MODULES or path.parent.name in BANNED_MODULES] == []


def test_no_class_has_a_name_that_says_nothing():
    named = [
        f"{path.name}: {node.name}"
        for path in SOURCES
        for node in source_nodes(path)
        if isinstance(node, ast.ClassDef) and BANNED_WORDS.search(node.name)
    ]

    assert named == []


def test_no_module_keeps_mutable_state():
    """Module-level lists, dicts and sets are tables: they are annotated Final, or named as constants, and never grow."""
    guilty = []
    for path in SOURCES:
        tree = source_tree(path)
        globals_used = {name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names}
        if globals_used:
            guilty.append((path.name, globals_used))

    assert guilty == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name):
    answer = CliRunner().invoke(volcano_command, [name, "--help"])

    assert answer.exit_code == 0, answer.output
    assert "Example" in answer.output


def test_examples_in_the_readme_name_files_that_exist():
    named = set(re.findall(r"\b(?:examples|docs)/[\w./-]+\w", (ROOT / "README.md").read_text()))

    assert named and [each for each in named if not (ROOT / each).exists()] == []


def test_decisions_are_numbered_once():
    numbers = [path.name.split("-")[0] for path in (ROOT / "docs" / "decisions").glob("*.md")]

    assert len(numbers) == len(set(numbers))


def test_one_module_reads_yaml():
    """The library's own loaders end the process on a deep text, and take minutes for a number to the base of 60."""
    loads = re.compile(r"\byaml\.(?:safe_|full_|unsafe_)?(?:load|load_all|parse|compose|scan)(?:_all)?\(")

    found = {ids(path).removeprefix("volcano/") for path in SOURCES if loads.search(path.read_text())}

    assert found == {"api/bounded_yaml.py"}


def test_one_module_compiles_the_patterns_of_users():
    """Variables given to `re.compile` may hold a user's pattern, which can keep Python's engine busy for hours."""
    allowed = {  # these compile texts of their own
        "api/bounded_yaml.py", "api/manifests.py", "api/formats.py",
    }  # fmt: skip
    compiled = re.compile(r"\bre\.(?:compile|match|search|fullmatch)\((?![rbf]*[\"']|\n|_?[A-Z])[\w.]+(?=[,)])")

    found = {
        ids(path).removeprefix("volcano/")
        for path in SOURCES
        if compiled.search(text := path.read_text()) or ("import re2" in text and path.name != "patterns.py")
    }

    assert found <= allowed


def test_json_that_is_decoded_may_be_nested_too_deeply():
    """msgspec raises RecursionError for it, which is no DecodeError: a text in an annotation could stop a component."""
    found = [
        f"{path.relative_to(ROOT)}:{handler.lineno}"
        for path in SOURCES
        if "testing" not in path.parts
        for handler in ast.walk(ast.parse(path.read_text()))
        if isinstance(handler, ast.ExceptHandler) and handler.type is not None
        for caught in [ast.unparse(handler.type)]
        if ("msgspec.DecodeError" in caught or "msgspec.MsgspecError" in caught) and "RecursionError" not in caught
    ]

    assert found == []
