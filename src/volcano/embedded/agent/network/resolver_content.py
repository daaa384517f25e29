"""The content of a pod's /etc/resolv.conf, by its dnsPolicy and dnsConfig. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.kubelet import AgentPod
from volcano.api.service_network import CLUSTER_DOMAIN, SERVICE_DOMAIN

MAX_NAME_SERVERS: Final = 3
MAX_SEARCH_DOMAINS: Final = 32
MAX_SEARCH_CHARACTERS: Final = 2048
CLUSTER_OPTIONS: Final = ("ndots:5",)


class Resolver(msgspec.Struct, frozen=True):
    """The settings of a resolver."""

    name_servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def read_resolver(text: str) -> Resolver:
    """A resolv.conf; of several `search` lines the last counts, as in resolvers."""
    servers: list[str] = []
    searches: list[str] = []
    options: list[str] = []
    for line in text.splitlines():
        match line.split():
            case ["nameserver", address, *_]:
                servers.append(address)
            case ["search" | "domain", *domains]:
                searches = domains
            case ["options", *more]:
                options += more
    return Resolver(tuple(servers), tuple(searches), tuple(options))


def policy_of(pod: AgentPod) -> str:
    """The policy that applies: ClusterFirst on the host's network means the host's settings."""
    policy = pod.spec.dns_policy or "ClusterFirst"
    if policy == "ClusterFirst" and pod.spec.host_network:
        return "Default"
    return "ClusterFirst" if policy == "ClusterFirstWithHostNet" else policy


def resolver_of(pod: AgentPod, machine: Resolver, *, name_server: str) -> Resolver:
    """The pod's settings. Without a name server of the cluster, ClusterFirst falls back to the machine's settings."""
    policy = policy_of(pod)
    base = machine
    if policy == "None":
        base = Resolver()
    elif policy == "ClusterFirst" and name_server:
        domains = (f"{pod.namespace}.{SERVICE_DOMAIN}", SERVICE_DOMAIN, CLUSTER_DOMAIN)
        base = Resolver((name_server,), (*domains, *machine.searches), CLUSTER_OPTIONS)
    config = pod.spec.dns_config or {}
    options = {option.partition(":")[0]: option for option in base.options}
    for given in config.get("options") or ():
        name, value = str(given.get("name") or ""), given.get("value")
        options[name] = f"{name}:{value}" if value is not None else name
    return Resolver(
        _unique((*base.name_servers, *map(str, config.get("nameservers") or ()))),
        _unique((*base.searches, *map(str, config.get("searches") or ()))),
        tuple(options.values()),
    )


def resolver_text(resolver: Resolver) -> str:
    lines = [f"nameserver {address}" for address in resolver.name_servers[:MAX_NAME_SERVERS]]
    searches = list(resolver.searches[:MAX_SEARCH_DOMAINS])
    while len(" ".join(searches)) > MAX_SEARCH_CHARACTERS:
        searches.pop()
    if searches:
        lines.append(f"search {' '.join(searches)}")
    if resolver.options:
        lines.append(f"options {' '.join(resolver.options)}")
    return "\n".join(lines) + "\n"


def _unique(words: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(words))
