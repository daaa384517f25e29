"""How an agent hands out the CPUs of this machine: what the flags for pinning mean, and what is read of the machine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click
import msgspec

from volcano.api.quantity import QuantityError, parse_quantity
from volcano.embedded.agent.cpus.cpu_pool import CpuPolicies, CpuPool
from volcano.embedded.agent.cpus.cpu_tree import UnreadableTree, read_machine

DEFAULT_RESERVED: Final = "1"
"""With the policy static: one CPU stays for the system and for pods that share."""

WHAT_STATIC_LEAVES: Final = (
    "pods can have CPUs for themselves; other processes of this machine and interrupts may still run there, and memory "
    "is not bound (annotation agent.volcano.sh/cpus of the node)"
)


class MachineCpus(msgspec.Struct, frozen=True):
    """The CPUs of this machine, and what its user should know about them."""

    pool: CpuPool | None = None
    notes: tuple[str, ...] = ()

    def allocatable(self, capacity: str) -> dict[str, str]:
        """What pods can have of a node with this many CPUs."""
        reserved = parse_quantity(self.pool.policies.reserved) if self.pool is not None else None
        return {"cpu": str(parse_quantity(capacity) - reserved)} if reserved else {}


def machine_cpus(*, manager: str, topology: str, reserved: str, tree: str, nodes: int) -> MachineCpus:
    """BadParameter where the flags contradict each other; a machine that cannot be read is a note."""
    is_static = manager == "static"
    if topology != "none" and not is_static:
        raise click.BadParameter("needs --cpu-manager-policy static", param_hint="--topology-manager-policy")
    if is_static and nodes > 1:
        raise click.BadParameter("static needs --nodes 1: nodes of one machine share its CPUs",
                                 param_hint="--cpu-manager-policy")  # fmt: skip
    amount = _reserved(reserved, is_static=is_static)
    if nodes != 1:
        return MachineCpus()
    try:
        machine = read_machine(Path(tree), frozenset(os.sched_getaffinity(0)))
    except UnreadableTree as error:
        if is_static:
            raise click.BadParameter(f"CPUs cannot be pinned: {error}", param_hint="--cpu-manager-policy") from error
        return MachineCpus(notes=(f"the NUMA topology of this machine is not published: {error}",))
    pool = CpuPool(machine, CpuPolicies(manager, topology, amount))
    if is_static and len(pool.reserved) >= len(machine.ids):
        return MachineCpus(pool, (f"no CPU can be pinned: {len(machine.ids)} of {len(machine.ids)} are reserved",))
    return MachineCpus(pool, (WHAT_STATIC_LEAVES,) if is_static else ())


def _reserved(text: str, *, is_static: bool) -> str:
    if not text:
        return DEFAULT_RESERVED if is_static else "0"
    name, _, amount = text.partition("=")
    if not is_static:
        raise click.BadParameter("needs --cpu-manager-policy static", param_hint="--system-reserved")
    try:
        is_positive = name == "cpu" and parse_quantity(amount).milli > 0
    except QuantityError:
        is_positive = False
    if not is_positive:
        raise click.BadParameter(f"{text!r} is not cpu=N with a positive N", param_hint="--system-reserved")
    return amount
