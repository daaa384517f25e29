"""`vcctl queue tree`: the hierarchy of queues, with what each deserves, is guaranteed, may have, holds and borrows."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from volcano.api.held_shares import HeldShare, children_of, queue_shares
from volcano.api.meta import JSON
from volcano.api.quantity import Quantity, parse_quantity
from volcano.cli.command_line import Called, say
from volcano.cli.connection import connect
from volcano.cli.formats import NONE_FOUND
from volcano.cli.resources import NODES, QUEUES

ZERO = Quantity(0)
MAX_DEPTH = 64
BAR = 20


def tree(called: Called) -> None:
    connection = connect(called)
    queues = connection.list(QUEUES)
    if not queues:
        say(NONE_FOUND)
        return
    total = allocatable_total(connection.list(NODES))
    for line in tree_lines(queues, total, colours=sys.stdout.isatty()):
        say(line)


def tree_lines(queues: list[JSON], total: Mapping[str, Quantity], *, colours: bool = False) -> Iterator[str]:
    """Depth first, children by name; a queue whose parent is not there stands beside the root."""
    by_name = {queue["metadata"]["name"]: queue for queue in queues}
    below = children_of((name, (queue.get("spec") or {}).get("parent") or "") for name, queue in by_name.items())
    children = {parent: [by_name[name] for name in names] for parent, names in below.items()}
    yield from _branch(children, "", "", total, colours, depth=0)


def _branch(
    children: Mapping[str, list[JSON]],
    parent: str,
    indent: str,
    total: Mapping[str, Quantity],
    colours: bool,
    *,
    depth: int,
) -> Iterator[str]:
    if depth > MAX_DEPTH:
        yield f"{indent}… deeper than {MAX_DEPTH} levels"
        return
    siblings = children.get(parent, [])
    for number, queue in enumerate(siblings):
        is_last = number == len(siblings) - 1
        mark, below = ("", "") if depth == 0 else ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        name = queue["metadata"]["name"]
        spec, status = queue.get("spec") or {}, queue.get("status") or {}
        state = status.get("state") or "-"
        yield f"{indent}{mark}{name}  {state}, weight {spec.get('weight', 1)}"
        guarantee = (spec.get("guarantee") or {}).get("resource")
        for share in queue_shares(
            spec.get("deserved"), guarantee, spec.get("capability"), status.get("allocated"), total
        ):
            yield f"{indent}{below}   {_resource_line(share, colours)}"
        yield from _branch(children, name, indent + below, total, colours, depth=depth + 1)


def _resource_line(share: HeldShare, colours: bool) -> str:
    parts = [f"allocated {share.allocated}"]
    limits = (("deserved", share.deserved), ("guaranteed", share.guarantee), ("capability", share.capability))
    parts += [f"{word} {amount}" for word, amount in limits if amount is not None]
    if share.borrowed:
        parts.append(f"borrowed {share.borrowed}")
    return f"{share.resource:<16}{_bar(share.allocated, share.borrowed, share.whole, colours)} {', '.join(parts)}"


def _bar(allocated: Quantity, borrowed: Quantity, whole: Quantity, colours: bool) -> str:
    """Full: held by right; hatched: borrowed; dots: the rest."""
    if not whole.nanos:
        return "·" * BAR
    filled = min(BAR, round(BAR * allocated.nanos / whole.nanos))
    lent = min(filled, round(BAR * borrowed.nanos / whole.nanos))
    own, lent_text, rest = "█" * (filled - lent), "▒" * lent, "·" * (BAR - filled)
    return f"\033[32m{own}\033[33m{lent_text}\033[0m{rest}" if colours else own + lent_text + rest


def allocatable_total(nodes: list[JSON]) -> dict[str, Quantity]:
    total: dict[str, Quantity] = {}
    for node in nodes:
        for resource, amount in ((node.get("status") or {}).get("allocatable") or {}).items():
            total[resource] = total.get(resource, ZERO) + parse_quantity(amount)
    return total
