"""A fact that several components need is computed in one module: this finds a second place by its shape.

`OWNERS` is the table: fact, owner, and how code that computes the fact looks in the syntax tree. A shape must be found
in its owner (else it finds nothing at all), in the example of a copy that stood here once, and nowhere else in `src`.
`EXCEPTIONS` names the places that look alike and compute something else, with the reason.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.architecture.source_trees import source_tree

ROOT = Path(__file__).resolve().parents[2] / "src"
SOURCES = sorted((ROOT / "volcano").rglob("*.py"))
Shape = Callable[[ast.AST], bool]


class Fact(NamedTuple):
    """`part` is the kind of syntax node that is looked at, `shape` tells whether it computes the fact."""

    owner: str
    part: type[ast.AST] | tuple[type[ast.AST], ...]
    shape: Shape
    copy: str


FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LITERALS = (ast.Tuple, ast.List, ast.Set)


# -- shapes -----------------------------------------------------------------------------------------------------------
def words(tree: ast.AST) -> set[str]:
    """Names, attributes, parameters and texts in a piece of code."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=word) | ast.Attribute(attr=word) | ast.arg(arg=word) | ast.Constant(value=str(word)):
                found.add(word)
    return found


def adds_up_init_containers(function: ast.AST) -> bool:
    said = words(function)
    if not said & {"init_containers", "initContainers"} or not said & {"requests", "limits", "resources", "_amounts"}:
        return False
    sums = {"added", "add", "sum", "max", "larger", "at_least"}
    return bool(said & sums) or any(
        isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Add) for node in ast.walk(function)
    )


def is_text(*texts: str) -> Shape:
    return lambda node: isinstance(node, ast.Constant) and node.value in texts


def contains(text: str) -> Shape:
    return lambda node: isinstance(node, ast.Constant) and isinstance(node.value, str) and text in node.value


def is_called(pattern: str) -> Shape:
    return lambda node: isinstance(node, FUNCTIONS) and re.search(pattern, node.name) is not None


def matches_taints(function: ast.AST) -> bool:
    """Compares an operator with Exists or Equal, in a function that knows of taints."""
    if is_called(r"tolerates$|is_tolerated")(function):
        return True
    if not words(function) & {"taint", "taints", "effect"}:
        return False
    for node in ast.walk(function):
        compared: list[ast.expr] = []
        match node:
            case ast.MatchValue(value=value):
                compared = [value]
            case ast.Compare(comparators=comparators):
                compared = comparators
        if any(words(each) & {"Exists", "Equal"} for each in compared):
            return True
    return False


def lists(*wanted: str) -> Shape:
    """A tuple, list or set that has these texts, names or attributes as elements."""

    def shape(node: ast.AST) -> bool:
        items = [
            item for item in getattr(node, "elts", ()) if isinstance(item, ast.Constant | ast.Name | ast.Attribute)
        ]
        return set(wanted) <= {word for item in items for word in words(item)}

    return shape


def either(*shapes: Shape) -> Shape:
    return lambda node: any(shape(node) for shape in shapes)


def cuts_a_history(function: ast.AST) -> bool:
    """Takes all but `limit` of a list."""
    for node in ast.walk(function):
        if isinstance(node, ast.Slice) and node.upper is not None:
            said = words(node.upper)
            if "len" in said and any("limit" in word for word in said):
                return True
    return False


def writes_rfc_3339(call: ast.AST) -> bool:
    match call:
        case ast.Call(func=ast.Attribute(attr="strftime"), args=args):
            return any("%dT%H" in word for arg in args for word in words(arg))
        case ast.Call(func=ast.Attribute(attr="replace"), args=[ast.Constant(value="+00:00"), ast.Constant(value="Z")]):
            return True
    return False


def extends_uvicorn(node: ast.AST) -> bool:
    return isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "uvicorn.Server" for base in node.bases)


# -- the table --------------------------------------------------------------------------------------------------------
OWNERS: dict[str, Fact] = {
    "what a pod requests and limits": Fact(
        "volcano.api.pods.requests",
        FUNCTIONS,
        adds_up_init_containers,
        """
        def _effective(spec, part):
            for container in spec.get("initContainers") or []:
                for name, amount in container["resources"]["requests"].items():
                    total[name] = max(total.get(name, 0), amount)
        """,
    ),
    "what an object counts for in a quota": Fact(
        "volcano.api.quotas",
        ast.Constant,
        either(is_text("services.nodeports"), contains(".storageclass.storage.k8s.io")),
        'CLASS_SUFFIX = ".storageclass.storage.k8s.io/"',
    ),
    "a quota's status": Fact(
        "volcano.embedded.apiserver.upkeep.quota_status",
        FUNCTIONS,
        lambda node: (
            bool(words(node) & {"QUOTAS", "ResourceQuota", "resourcequotas"})
            and bool(words(node) & {"PATCH", "patch_status", "ResourceQuotaStatus"})
        ),
        """
        def decide(self, key, world):
            quota = world.get(ResourceQuota, key)
            return patch_status(quota, status)
        """,
    ),
    "the QoS class": Fact(
        "volcano.api.pods.quality",
        (*FUNCTIONS, ast.Constant),
        either(is_text("Guaranteed", "Burstable"), is_called(r"qos|quality_of")),
        'def qos_class(spec): return "Burstable"',
    ),
    "whether a toleration matches a taint": Fact(
        "volcano.api.pods.tolerations",
        FUNCTIONS,
        matches_taints,
        """
        def _matches(each, taint):
            return each.get("operator") == "Exists" or each["value"] == taint["value"]
        """,
    ),
    "a pod's state in one word": Fact(
        "volcano.api.pods.state",
        ast.Constant,
        either(is_text("Init:"), is_text("NodeLost")),
        'def status_text(pod): return f"Init:{reason}"',
    ),
    "which phases of a pod are final": Fact(
        "volcano.api.core.pods", LITERALS, lists("Succeeded", "Failed"), 'DONE = ("Failed", "Succeeded")'
    ),
    "which phases of a job are final": Fact(
        "volcano.api.batch",
        LITERALS,
        either(lists("COMPLETED", "TERMINATED"), lists("Completed", "Terminated")),
        "FINISHED = (Phase.COMPLETED, Phase.FAILED, Phase.TERMINATED)",
    ),
    "which runs of a cron job are deleted": Fact(
        "volcano.api.cron.history",
        FUNCTIONS,
        cuts_a_history,
        """
        def pruned(cron, jobs):
            return sorted(jobs)[: max(0, len(jobs) - limit)]
        """,
    ),
    "RFC 3339 texts": Fact(
        "volcano.api.times", ast.Call, writes_rfc_3339, 'when = moment.strftime("%Y-%m-%dT%H:%M:%SZ")'
    ),
    "field error wording": Fact(
        "volcano.api.field_errors",
        FUNCTIONS,
        lambda node: any(contains("Unsupported value: ")(each) for each in ast.walk(node)) and "join" in words(node),
        """
        def unsupported(value, allowed):
            return f"Unsupported value: {value}: supported values: " + ", ".join(allowed)
        """,
    ),
    "the uvicorn server": Fact(
        "volcano.machinery.https_server",
        ast.ClassDef,
        extends_uvicorn,
        "class Server(uvicorn.Server): pass",
    ),
}

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("volcano.api.pods.quality", "what a pod requests and limits"): "QoS compares the plain sums of all containers",
    (
        "volcano.api.pods.validation.resources",
        "what an object counts for in a quota",
    ): "lists names that are whole numbers",
    (
        "volcano.api.pods.validation.placement",
        "whether a toleration matches a taint",
    ): "checks tolerations, has no taint",
    ("volcano.embedded.cluster.workloads.stateful_sets", "which runs of a cron job are deleted"): "revisions, not runs",
    (
        "volcano.embedded.agent.processes.container_log",
        "RFC 3339 texts",
    ): "a program of its own without imports from here",
}
"""(module, fact) → why it looks like a copy and is none."""


@cache
def parsed() -> dict[str, ast.Module]:
    return {name_of(path): source_tree(path) for path in SOURCES}


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def without_docstrings(tree: ast.AST) -> tuple[ast.AST, ...]:
    nodes = tuple(ast.walk(tree))
    texts = {id(node.value) for node in nodes if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)}
    return tuple(node for node in nodes if id(node) not in texts)


def found_in(tree: ast.AST, fact: Fact) -> bool:
    return any(isinstance(node, fact.part) and fact.shape(node) for node in without_docstrings(tree))


@pytest.mark.parametrize("name", OWNERS)
def test_a_fact_is_computed_by_its_owner_alone(name: str):
    fact = OWNERS[name]

    places = {module for module, tree in parsed().items() if found_in(tree, fact)}

    assert fact.owner in places, "the shape is found in its owner, or it finds nothing"
    others = places - {fact.owner} - {module for module, about in EXCEPTIONS if about == name}
    assert not others, f"{name}: use {fact.owner}"


@pytest.mark.parametrize("name", OWNERS)
def test_a_copy_is_found(name: str):
    assert found_in(ast.parse(textwrap.dedent(OWNERS[name].copy)), OWNERS[name])


@pytest.mark.parametrize(("module", "name"), EXCEPTIONS)
def test_an_exception_is_still_needed(module: str, name: str):
    assert found_in(parsed()[module], OWNERS[name]), "remove it from EXCEPTIONS"


def test_front_ends_do_not_decide_which_nodes_would_take_a_pod():
    """The scheduler says so, in the reason on the PodGroup and in its answer to /simulate."""
    terms = {"taints", "nodeSelector", "nodeAffinity", "node_selector", "tolerations"}
    guilty = {
        module: words(tree) & terms
        for module, tree in parsed().items()
        if module.startswith(("volcano.cli", "volcano.flow")) and words(tree) & terms
    }

    assert guilty == {}
