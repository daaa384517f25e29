"""Ports that an ordinary user may not open are named with what the kernel would have to grant."""

from __future__ import annotations

from volcano.embedded.agent.network.pod_connections import port_lack


def test_low_ports_are_named_with_the_missing_capability() -> None:
    said = port_lack([22, 8080, 22], first=1024)

    assert said.startswith("port 22 cannot be opened in this pod") and "CAP_NET_BIND_SERVICE" in said


def test_nothing_is_said_where_every_port_can_be_opened() -> None:
    assert port_lack([8080], first=1024) == port_lack([22], first=0) == port_lack([], first=1024) == ""
