"""Names and name resolution of a pod: DNS, host names, host aliases, ports on the host's network."""

from __future__ import annotations

from typing import Final

from volcano.api import names
from volcano.api.fields import Field

POLICIES: Final = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
MOST_SERVERS: Final = 3
MOST_SEARCHES: Final = 32
MAX_SEARCHES_LENGTH: Final = 2048


def check_dns(spec: Field) -> None:
    policy, config = spec.text("dnsPolicy"), spec.at("dnsConfig")
    spec.at("dnsPolicy").one_of(*POLICIES)
    servers, searches = config.texts("nameservers"), config.texts("searches")
    if policy == "None":
        if not config.is_set:
            config.required("must provide `dnsConfig` when `dnsPolicy` is None")
            return
        if not servers:
            config.at("nameservers").required("must provide at least one DNS nameserver when `dnsPolicy` is None")
            return
    if len(servers) > MOST_SERVERS:
        config.at("nameservers").invalid(f"must not have more than {MOST_SERVERS} nameservers")
    for server in config.each("nameservers"):
        check_address(server)
    if len(searches) > MOST_SEARCHES:
        config.at("searches").invalid(f"must not have more than {MOST_SEARCHES} search paths")
    if names.byte_length(" ".join(searches)) > MAX_SEARCHES_LENGTH:
        detail = f"must not have more than {MAX_SEARCHES_LENGTH} characters (including spaces) in the search list"
        config.at("searches").invalid(detail)
    for search in config.each("searches"):
        text = search.as_text().removesuffix(".")
        if search.value != ".":
            for problem in names.underscored_subdomain_problems(text):
                search.invalid(problem, text)
    for option in config.each("options"):
        if not option.text("name"):
            option.required("must not be empty")


def check_host_names(spec: Field) -> None:
    override = spec.at("hostnameOverride")
    if override.is_set:
        if spec.truth("setHostnameAsFQDN"):
            override.forbidden("may not be specified when setHostnameAsFQDN is true")
        if spec.truth("hostNetwork"):
            override.forbidden("may not be specified when hostNetwork is true")
        if names.byte_length(override.as_text()) > 64:
            override.too_long(64)
        for problem in names.subdomain_problems(override.as_text()):
            override.invalid(problem, override.as_text())
    for name in ("hostname", "subdomain"):
        if text := spec.text(name):
            spec.at(name).check(names.dns_label_problems(text))
    for alias in spec.each("hostAliases"):
        check_address(alias.at("ip"))
        for hostname in alias.each("hostnames"):
            for problem in names.subdomain_problems(hostname.as_text()):
                hostname.invalid(problem, hostname.as_text())


def check_host_network(spec: Field) -> None:
    """On the host's network a container's port is the host's port."""
    if not spec.truth("hostNetwork"):
        return
    for container in spec.each("containers"):
        for port in container.each("ports"):
            host_port = port.number("hostPort")
            if host_port and host_port != port.number("containerPort"):
                port.at("hostPort").invalid("must match `containerPort` when `hostNetwork` is true")


def check_address(place: Field) -> None:
    text = place.as_text()
    for problem in names.ip_problems(text):
        place.invalid(problem, text)
