"""The syntax trees of source files, each parsed once for all architecture tests."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def source_tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def source_nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of the file's tree."""
    return tuple(ast.walk(source_tree(path)))
