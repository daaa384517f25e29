"""The resolv.conf of a pod."""

from __future__ import annotations

from typing import Any

import msgspec

from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.network.resolver_content import Resolver, read_resolver, resolver_of, resolver_text

MACHINE = Resolver(("192.0.2.1",), ("corp.example",), ("timeout:1",))


def a_pod(**spec: Any) -> AgentPod:
    return msgspec.convert({"metadata": {"name": "p", "namespace": "shop"}, "spec": spec}, AgentPod)


def test_a_machines_file_is_read():
    text = "# comment\nnameserver 192.0.2.1\ndomain old\nsearch corp.example\noptions timeout:1\n"
    assert read_resolver(text) == MACHINE


def test_the_machines_search_domains_come_after_the_clusters():
    found = resolver_of(a_pod(), MACHINE, name_server="10.96.0.10")

    assert resolver_text(found) == (
        "nameserver 10.96.0.10\n"
        "search shop.svc.cluster.local svc.cluster.local cluster.local corp.example\n"
        "options ndots:5\n"
    )


def test_without_a_name_server_the_machines_settings_stay():
    assert resolver_of(a_pod(), MACHINE, name_server="") == MACHINE


def test_settings_of_the_pod_are_added_and_replace_options_of_the_same_name():
    config = {
        "searches": ["corp.example", "b.example"],
        "options": [{"name": "ndots", "value": "1"}, {"name": "rotate"}],
    }

    found = resolver_of(a_pod(dnsPolicy="Default", dnsConfig=config), MACHINE, name_server="10.96.0.10")

    assert found == Resolver(("192.0.2.1",), ("corp.example", "b.example"), ("timeout:1", "ndots:1", "rotate"))


def test_the_number_of_name_servers_and_domains_is_limited():
    many = Resolver(tuple(f"192.0.2.{n}" for n in range(9)), tuple(f"{'d' * 60}{n}.example" for n in range(40)))

    lines = resolver_text(many).splitlines()

    assert len(lines) == 4
    assert len(lines[3].split()) <= 33 and len(lines[3]) <= 2048 + len("search ")
