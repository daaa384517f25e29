"""Addresses of pods, and the subnet that they are from."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from volcano.api.service_network import SERVICE_RANGE
from volcano.embedded.agent.network.network import Addresses, BridgedNetwork, NetworkUnavailable


def test_addresses_differ_and_come_back_last():
    addresses = Addresses(ipaddress.IPv4Network("10.0.0.0/27"))
    first = [addresses.take(f"pod-{number}") for number in range(5)]
    assert len(set(first)) == 5 and addresses.take("pod-0") == first[0]

    addresses.give_back("pod-0")

    assert addresses.take("another") not in first


def test_a_full_network_says_so():
    addresses = Addresses(ipaddress.IPv4Network("10.0.0.0/27"))
    with pytest.raises(NetworkUnavailable, match=r"10\.0\.0\.0/27"):
        for number in range(40):
            addresses.take(f"pod-{number}")


def test_pods_get_a_network_the_machine_does_not_have_yet(tmp_path: Path):
    first = BridgedNetwork(tmp_path).subnet

    second = BridgedNetwork(tmp_path, routes=[first]).subnet

    assert not first.overlaps(second)


def test_the_pods_network_is_never_within_the_range_of_services(tmp_path: Path):
    given = tmp_path / "agent"
    given.mkdir()
    (given / "network.json").write_text('{"subnet": "10.100.0.0/16"}')

    subnets = [BridgedNetwork(tmp_path / str(number)).subnet for number in range(200)]

    assert not any(subnet.overlaps(SERVICE_RANGE) for subnet in [*subnets, BridgedNetwork(given).subnet])
