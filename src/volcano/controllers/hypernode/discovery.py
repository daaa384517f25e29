"""HyperNodes from labels of nodes: which there should be, given the configuration and the nodes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from volcano.api.bounded_yaml import BoundedYamlError, load_yaml
from volcano.api.core import Node
from volcano.api.meta import JSON
from volcano.api.topology import HyperNode

SOURCE_LABEL: Final = "volcano.sh/network-topology-source"
LABEL_SOURCE: Final = "label"
CONFIG_KEY: Final = "volcano-controller.conf"
MAX_TYPE_CHARACTERS: Final = 20


@dataclass(frozen=True, slots=True)
class Discovery:
    """What the configuration asks of the label source: per type, the label keys of its tiers, narrowest first."""

    enabled: bool = False
    types: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unsupported: tuple[str, ...] = ()


@dataclass(slots=True)
class DiscoveredDomain:
    """A HyperNode that should exist."""

    name: str
    tier: int
    label: str
    value: str
    members: set[str] = field(default_factory=set)

    def spec(self) -> JSON:
        kind = "Node" if self.tier == 1 else "HyperNode"
        members = [{"type": kind, "selector": {"exactMatch": {"name": name}}} for name in sorted(self.members)]
        return {"tier": self.tier, "tierName": self.label, "members": members}

    def labels(self) -> dict[str, str]:
        return {SOURCE_LABEL: LABEL_SOURCE, self.label: self.value}


def parse_discovery(text: str) -> Discovery:
    """The configuration as far as it can be read; nonsense counts as no configuration."""
    try:
        document = load_yaml(text)
    except BoundedYamlError:
        return Discovery()
    sources = document.get("networkTopologyDiscovery") if isinstance(document, dict) else None
    sources = sources if isinstance(sources, list) else []
    wanted = [s for s in sources if isinstance(s, dict) and s.get("enabled") is True]
    unsupported = tuple(str(s.get("source")) for s in wanted if s.get("source") != LABEL_SOURCE)
    mine = next((s for s in wanted if s.get("source") == LABEL_SOURCE), None)
    if mine is None:
        return Discovery(unsupported=unsupported)
    config = mine.get("config")
    types = config.get("networkTopologyTypes") if isinstance(config, dict) else None
    return Discovery(True, _types(types if isinstance(types, dict) else {}), unsupported)


def _types(types: Mapping[Any, Any]) -> dict[str, tuple[str, ...]]:
    """Listed widest first, the last being the host name, which makes no domain."""
    answer: dict[str, tuple[str, ...]] = {}
    for name, entries in types.items():
        labels = (
            [str(e.get("nodeLabel", "")) for e in entries if isinstance(e, dict)] if isinstance(entries, list) else []
        )
        if len(str(name)) <= MAX_TYPE_CHARACTERS and len(set(labels)) == len(labels) and "" not in labels:
            answer[str(name)] = tuple(reversed(labels[:-1]))
    return answer


def discover(
    types: Mapping[str, tuple[str, ...]], nodes: Iterable[Node], known: Iterable[HyperNode]
) -> list[DiscoveredDomain]:
    """The domains that the nodes' labels make, each under the name it already has if it has one."""
    nodes, known = sorted(nodes, key=lambda node: node.name), sorted(known, key=lambda domain: domain.name)
    found: dict[tuple[str, str, str], DiscoveredDomain] = {}
    for kind, labels in sorted(types.items()):
        for node in nodes:
            member = node.name
            for tier, label in enumerate(labels, start=1):
                value = node.labels.get(label)
                if value is None:
                    break
                if (kind, label, value) not in found:
                    name = _name(f"hypernode-{_spelled(kind)}-tier{tier}", label, value, known)
                    found[kind, label, value] = DiscoveredDomain(name, tier, label, value)
                found[kind, label, value].members.add(member)
                member = found[kind, label, value].name
    return sorted(found.values(), key=lambda domain: domain.name)


def _name(prefix: str, label: str, value: str, known: Iterable[HyperNode]) -> str:
    for domain in known:
        if domain.name.startswith(prefix) and domain.labels.get(label) == value:
            return domain.name
    digest = hashlib.sha256(f"{label}={value}".encode()).hexdigest()
    return f"{prefix}-{digest[:5]}"


def _spelled(kind: str) -> str:
    return re.sub(r"[^a-z0-9.-]", "-", kind.lower())
