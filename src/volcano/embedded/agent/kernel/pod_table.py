"""The nftables table of a pod network: NAT for packets to the outside, and refusals of addresses that have no endpoint.

Making it again replaces it; removing it when it does not exist is not an error. The rules of services are added to it
by service_rules.
"""

from __future__ import annotations

import ipaddress
from typing import Final

from volcano.embedded.agent.kernel import nftables as nft

FORWARD_CHAIN: Final = "forward"
INPUT_CHAIN: Final = "input"
POSTROUTING_CHAIN: Final = "postrouting"


def make_pod_table(
    table: str, subnet: ipaddress.IPv4Network, bridge: str, service_range: ipaddress.IPv4Network
) -> None:
    """Packets of pods to the outside get the machine's address; those to pods or services never leave the machine.

    A packet to a service that has endpoints has their address by the time it is forwarded. What listens at the
    bridge's address (names, the API server) is for pods and for this machine, not for the networks around it.
    """
    from_pods = nft.source() + nft.is_within(subnet)
    elsewhere = nft.device_is(nft.OUT_DEVICE, bridge, negated=True)
    nft.transact(
        [
            *nft.empty_table(table),
            nft.base_chain(table, POSTROUTING_CHAIN, "nat", nft.POSTROUTING, nft.SOURCE_NAT_PRIORITY),
            nft.rule(table, POSTROUTING_CHAIN, from_pods, elsewhere, nft.masquerade()),
            nft.base_chain(table, FORWARD_CHAIN, "filter", nft.FORWARD, nft.FILTER_PRIORITY),
            nft.rule(
                table,
                FORWARD_CHAIN,
                nft.device_is(nft.IN_DEVICE, bridge),
                nft.destination(),
                nft.is_within(service_range),
                nft.reject(),
            ),
            nft.base_chain(table, INPUT_CHAIN, "filter", nft.INPUT, nft.FILTER_PRIORITY),
            nft.rule(
                table,
                INPUT_CHAIN,
                nft.device_is(nft.IN_DEVICE, bridge, negated=True),
                nft.device_is(nft.IN_DEVICE, "lo", negated=True),
                nft.destination(),
                nft.is_within(subnet),
                nft.reject(),
            ),
            nft.rule(table, FORWARD_CHAIN, elsewhere, nft.destination(), nft.is_within(subnet), nft.reject()),
        ]
    )


def remove_table(table: str) -> None:
    nft.transact(nft.no_table(table))
