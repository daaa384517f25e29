"""What the API server knows of a built-in kind stands in kinds/: verbs and subresources do not tell kinds apart."""

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source_trees import source_nodes
from volcano.api.scheme import BUILT_IN
from volcano.embedded.apiserver.kinds.strategy_table import STRATEGIES

SERVER = Path(__file__).resolve().parents[2] / "src/volcano/embedded/apiserver"
NAMES = {name for row in BUILT_IN for name in (row.kind, row.plural, row.qualified)} - {"Event"}
COMPARISON = re.compile(r"\b(type|row|served)\.(plural|qualified|kind|storage|group)\s*(==|!=|in\b|not in\b)")


def texts_in(path: Path) -> list[str]:
    return [node.value for node in source_nodes(path) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


@pytest.mark.parametrize("path", sorted((SERVER / "verbs").glob("*.py")), ids=lambda path: path.name)
def test_verbs_name_no_kind(path: Path):
    assert sorted(set(texts_in(path)) & NAMES) == []
    assert "is_custom" not in path.read_text()


@pytest.mark.parametrize(
    "path",
    sorted([*(SERVER / "verbs").glob("*.py"), *(SERVER / "subresources").glob("*.py")]),
    ids=lambda path: path.name,
)
def test_verbs_and_subresources_do_not_branch_on_kinds(path: Path):
    assert COMPARISON.findall(path.read_text()) == []


def test_every_row_of_the_table_is_a_built_in_kind():
    assert set(STRATEGIES) <= {row.qualified for row in BUILT_IN}
