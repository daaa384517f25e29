"""Which client certificates the kubelet endpoint accepts."""

from __future__ import annotations

import pytest

from volcano.embedded.agent.streams.kubelet_server import is_trusted


@pytest.mark.parametrize(
    ("subject", "trusted"),
    [
        ((), False),
        (((("commonName", "kube-apiserver-kubelet-client"),),), True),
        (((("organizationName", "system:masters"),), (("commonName", "admin"),)), True),
        (((("organizationName", "developers"),), (("commonName", "mallory"),)), False),
    ],
)
def test_only_the_api_servers_certificate_is_trusted(subject: tuple[object, ...], trusted: bool):
    assert is_trusted({"subject": subject}) is trusted
    assert not is_trusted(None)
