"""Addresses that nobody serves are refused on the machine: no packet to them goes out through the NAT rule."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from tests import needs
from tests.system.agent.network_lab import OUTSIDE, Lab, attempt, inside

pytestmark = [pytest.mark.root, needs.NETWORK_NAMESPACES]


def speak_to_unserved_addresses(lab: Lab) -> dict[str, Any]:
    lab.add_pod("a")
    tries = {
        "tcp": lab.in_pod("a", lambda: attempt("10.96.7.7", 80)),
        "last address": lab.in_pod("a", lambda: attempt("10.111.255.254", 443)),
        "udp": lab.in_pod("a", lambda: attempt("10.96.7.7", 53, kind=socket.SOCK_DGRAM)),
        "no such pod": lab.in_pod("a", lambda: attempt("10.64.99.99", 80)),
    }
    return {"tries": tries, "left": lab.left_the_machine()}


def speak_to_the_outside(lab: Lab) -> int:
    lab.add_pod("a")
    lab.in_pod("a", lambda: attempt(OUTSIDE, 80))
    return lab.left_the_machine()


def speak_to_each_other(lab: Lab) -> dict[str, Any]:
    lab.add_pod("a")
    address = lab.add_pod("b")
    server = lab.in_pod("b", lambda: socket.create_server(("", 80)))
    client = lab.in_pod("a", lambda: socket.create_connection((address, 80), 5))
    seen = server.accept()[1][0]
    client.close()
    return {"seen": seen, "own": lab.addresses["a"], "left": lab.left_the_machine()}


def test_a_service_address_that_nobody_serves_is_refused_and_nothing_leaves_the_machine():
    found = inside(speak_to_unserved_addresses)

    refused = "ConnectionRefusedError"
    assert found["tries"] | {"no such pod": ""} == {
        "tcp": refused,
        "last address": refused,
        "udp": refused,
        "no such pod": "",
    }
    assert found["tries"]["no such pod"] != "connected"
    assert found["left"] == 0


def test_other_addresses_are_reached_through_the_uplink():
    assert inside(speak_to_the_outside) > 0


def test_pods_reach_each_other_with_their_own_addresses():
    found = inside(speak_to_each_other)

    assert found["seen"] == found["own"]
    assert found["left"] == 0
