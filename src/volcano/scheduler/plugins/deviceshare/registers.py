"""Registers: which cards a node has, as its device plugin tells it. What cannot be read is a reason, no exception."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np

from volcano.api.device_families import DeviceFamily, DomainRule, MigGeometry, MigGroup, MigInstance, RegisterForm
from volcano.scheduler.core.card_slices import ChipSlicing, MigSlicing, Slicing
from volcano.scheduler.core.cards import Card
from volcano.scheduler.model import EPSILON, Node

MAX_REGISTER_CHARACTERS: Final = 256 * 1024  # what Kubernetes allows all annotations of an object
MAX_CARDS_OF_A_NODE: Final = 1024
MAX_NUMBER_DIGITS: Final = 15
MAX_DOMAINS_OF_A_NODE: Final = 1024
MAX_GEOMETRY_GROUPS: Final = 64
MAX_INSTANCES_OF_A_CARD: Final = 64
HAMI_CORE, MIG = "hami-core", "mig"
VOLCANO_FIELDS, HAMI_FIELDS = 6, 7


@dataclass(slots=True, frozen=True)
class NodeCards:
    """The cards of a node; or why they cannot be known."""

    cards: tuple[Card, ...] = ()
    problem: str = ""


class UnreadableRegister(ValueError):
    """The message says what is wrong with it."""


NO_CARDS: Final = NodeCards()


def cards_on(family: DeviceFamily, node: Node) -> NodeCards:
    """The node's cards of a family; none where it does not have them."""
    if any(node.allocatable[name] < EPSILON for name in family.needs):
        return NO_CARDS
    try:
        cards = READERS[family.form](family, node)
    except UnreadableRegister as error:
        return NodeCards(problem=f"the node's {family.register or family.count} cannot be read: {error}")
    if len(cards) > MAX_CARDS_OF_A_NODE:
        return NodeCards(problem=f"the node's {family.register} names more than {MAX_CARDS_OF_A_NODE} cards")
    if len({card.id for card in cards}) < len(cards):
        twice, _ = Counter(card.id for card in cards).most_common(1)[0]
        return NodeCards(problem=f"the node's {family.register} names {twice[:64]} twice")
    return NodeCards(cards)


# -- amounts of the node -----------------------------------------------------------------------------------------------
def _from_capacity(family: DeviceFamily, node: Node) -> tuple[Card, ...]:
    memory, number = node.capacity[family.memory] / 1000, int(node.capacity[family.count] / 1000)
    if memory <= 0 or number <= 0:
        return ()
    if number > MAX_CARDS_OF_A_NODE:
        raise UnreadableRegister(f"more than {MAX_CARDS_OF_A_NODE} cards")
    broken = {part.strip() for part in node.annotations.get(family.register, "").split(",")}
    each = float(memory // number)
    return tuple(Card(str(id), each, np.inf) for id in range(number) if str(id) not in broken)


# -- volcano-vgpu ------------------------------------------------------------------------------------------------------
def _from_volcano(family: DeviceFamily, node: Node) -> tuple[Card, ...]:
    text = node.annotations.get(family.register)
    return _volcano_cards(text, family.geometries, family.memory_factor) if text else ()


@lru_cache(maxsize=8192)
def _volcano_cards(text: str, geometries: tuple[MigGeometry, ...], factor: int) -> tuple[Card, ...]:
    cards = []
    for place, fields in _entries(text):
        if len(fields) < VOLCANO_FIELDS:
            raise UnreadableRegister(f"card {place} has {len(fields)} of {VOLCANO_FIELDS} fields")
        users, memory = _whole(fields[1], place, "users"), _whole(fields[2], place, "memory")
        slicing = _geometry(fields[3], geometries, factor) if fields[5] == MIG else None
        mode = MIG if slicing is not None else HAMI_CORE
        healthy = fields[4].lower() != "false"
        cards.append(Card(fields[0], memory, users, fields[3], mode, slicing=slicing, healthy=healthy))
    return tuple(cards)


def _entries(text: str) -> Iterator[tuple[int, list[str]]]:
    if len(text) > MAX_REGISTER_CHARACTERS:
        raise UnreadableRegister(f"it is longer than {MAX_REGISTER_CHARACTERS} characters")
    for place, entry in enumerate(text.split(":"), start=1):
        if entry.strip():
            yield place, [field.strip() for field in entry.split(",")]


def _whole(text: str, place: int, what: str) -> float:
    if not (text.isascii() and text.isdigit() and len(text) <= MAX_NUMBER_DIGITS):
        raise UnreadableRegister(f"card {place}: {what} is no whole number: {text[:32]!r}")
    return float(text)


def _geometry(kind: str, geometries: tuple[MigGeometry, ...], factor: int) -> Slicing | None:
    for geometry in geometries:
        if any(model in kind for model in geometry.models):
            return MigSlicing(geometry, max(factor, 1))
    return None


# -- HAMi --------------------------------------------------------------------------------------------------------------
def _from_hami(family: DeviceFamily, node: Node) -> tuple[Card, ...]:
    text = node.annotations.get(family.register)
    if not text:
        return ()
    soft = node.annotations.get(family.soft_node) if family.soft_node else None
    offers = family.soft_default if soft is None else soft.strip().lower() == "true"
    return _hami_cards(text, family, offers)


@lru_cache(maxsize=8192)
def _hami_cards(text: str, family: DeviceFamily, offers_soft_shares: bool) -> tuple[Card, ...]:
    listed = _hami_json(text) if text.lstrip().startswith("[") else _hami_fields(text)
    cards = []
    for place, of in enumerate(listed, start=1):
        mode = str(of.get("mode") or "")
        kind = str(of.get("type") or "")
        slicing: Slicing | None = None
        if mode == MIG:
            slicing = _stated_geometry(of.get("migtemplate"), place) or _geometry(kind, family.geometries, 1)
        cores = _amount(of.get("devcore", 0), place, "devcore")
        cards.append(
            Card(
                _name(of.get("id"), place),
                _amount(of.get("devmem"), place, "devmem"),
                _amount(of.get("count", 0), place, "count") or np.inf,
                kind,
                MIG if slicing is not None else HAMI_CORE if offers_soft_shares or not family.soft_node else "",
                all_cores=cores or np.inf,
                domain=_domain(family, of, place),
                slicing=slicing,
                healthy=bool(of.get("health", True)),
            )
        )
    return tuple(cards)


def _hami_json(text: str) -> list[Mapping[str, Any]]:
    if len(text) > MAX_REGISTER_CHARACTERS:
        raise UnreadableRegister(f"it is longer than {MAX_REGISTER_CHARACTERS} characters")
    try:
        read = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise UnreadableRegister(f"it is no JSON: {error}") from error
    if not isinstance(read, list) or not all(isinstance(each, dict) for each in read):
        raise UnreadableRegister("it is no list of objects")
    return read


def _hami_fields(text: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = []
    for place, fields in _entries(text):
        if len(fields) < HAMI_FIELDS:
            raise UnreadableRegister(f"card {place} has {len(fields)} of {HAMI_FIELDS} fields")
        found.append(
            {
                "id": fields[0],
                "count": fields[1],
                "devmem": fields[2],
                "devcore": fields[3],
                "type": fields[4],
                "numa": fields[5],
                "health": fields[6].lower() != "false",
                "mode": fields[8] if len(fields) > 8 else "",
            }
        )
    return found


def _name(value: Any, place: int) -> str:
    if not isinstance(value, str) or not value or set(value) & set(",:;[]"):
        raise UnreadableRegister(f"card {place}: id is no name: {str(value)[:32]!r}")
    return value


def _amount(value: Any, place: int, what: str) -> float:
    if isinstance(value, str):
        return _whole(value, place, what)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 10**MAX_NUMBER_DIGITS:
        raise UnreadableRegister(f"card {place}: {what} is no whole number: {str(value)[:32]!r}")
    return float(value)


def _domain(family: DeviceFamily, of: Mapping[str, Any], place: int) -> int:
    """The NUMA node, or for Ascend the network, that a card belongs to."""
    value: Any = of.get("numa", 0)
    if family.domains is DomainRule.PREFERRED:
        extra = of.get("custominfo")
        value = extra.get("NetworkID", 0) if isinstance(extra, Mapping) else 0
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    number = _amount(value if value not in ("", None, -1, "-1") else 0, place, "domain")
    return int(number) % MAX_DOMAINS_OF_A_NODE


def _stated_geometry(value: Any, place: int) -> Slicing | None:
    """Geometries that the register itself states: a list of groups, each a list of instances."""
    if not value:
        return None
    if not isinstance(value, list) or len(value) > MAX_GEOMETRY_GROUPS or not all(isinstance(g, list) for g in value):
        raise UnreadableRegister(f"card {place}: migtemplate is no list of at most {MAX_GEOMETRY_GROUPS} lists")
    groups = []
    for number, stated in enumerate(value):
        instances = [
            MigInstance(str(each.get("name", "")), _amount(each.get("memory"), place, "migtemplate"), int(
                _amount(each.get("count", 1), place, "migtemplate")
            ))
            for each in stated
            if isinstance(each, Mapping)
        ]  # fmt: skip
        if sum(instance.count for instance in instances) > MAX_INSTANCES_OF_A_CARD:
            raise UnreadableRegister(f"card {place}: migtemplate has more than {MAX_INSTANCES_OF_A_CARD} instances")
        groups.append(MigGroup(str(number), tuple(instances)))
    return MigSlicing(MigGeometry((), tuple(groups)))


# -- chips of MindCluster ----------------------------------------------------------------------------------------------
def _from_chips(family: DeviceFamily, node: Node) -> tuple[Card, ...]:
    if family.whole_cards:
        return _ring_cards(family, node)
    kind, per_chip = _second_part(node.labels.get("accelerator")), _second_part(node.labels.get("servertype"))
    if not kind or not per_chip:
        raise UnreadableRegister("the labels accelerator and servertype do not tell kind and cores of the chips")
    cores = _whole(per_chip.lower().removesuffix("c"), 1, "servertype")
    total = node.allocatable[family.count] / 1000.0
    if cores <= 0 or total % cores:
        raise UnreadableRegister(f"{total:.0f} cores are no multiple of {cores:.0f}, the cores of a chip")
    if total / cores > MAX_CARDS_OF_A_NODE:
        raise UnreadableRegister(f"more than {MAX_CARDS_OF_A_NODE} chips")
    broken = _chip_numbers(node.annotations.get(f"huawei.com/{kind}-Unhealthy", ""))
    slicing = ChipSlicing(int(cores))
    return tuple(
        Card(str(number), cores, np.inf, kind, slicing=slicing, healthy=number not in broken)
        for number in range(int(total / cores))
    )


def _ring_cards(family: DeviceFamily, node: Node) -> tuple[Card, ...]:
    """Whole cards: as many as the node has, numbered from 0; cards that the plugin reports as broken are left out."""
    total = int(node.allocatable[family.count] / 1000.0)
    broken = _chip_numbers(node.annotations.get(f"{family.register}-Unhealthy", ""))
    if total + len(broken) > MAX_CARDS_OF_A_NODE:
        raise UnreadableRegister(f"more than {MAX_CARDS_OF_A_NODE} cards")
    kind = family.register.rpartition("/")[2]
    numbers = [number for number in range(total + len(broken)) if number not in broken][:total]
    return tuple(Card(f"{kind}-{n}", 1.0, 1.0, kind, domain=n // max(family.ring_size, 1)) for n in numbers)


def _second_part(label: str | None) -> str:
    return (label or "").partition("-")[2].partition("-")[0]


def _chip_numbers(text: str) -> set[int]:
    """`Ascend310P-0,Ascend310P-3` as 0 and 3; what is no such name is left out."""
    last = (part.strip().rpartition("-")[2] for part in text.split(","))
    return {int(part) for part in last if part.isascii() and part.isdigit() and len(part) <= 4}


READERS: Final[Mapping[RegisterForm, Callable[[DeviceFamily, Node], tuple[Card, ...]]]] = {
    RegisterForm.CAPACITY: _from_capacity,
    RegisterForm.VOLCANO: _from_volcano,
    RegisterForm.HAMI: _from_hami,
    RegisterForm.CHIPS: _from_chips,
}
