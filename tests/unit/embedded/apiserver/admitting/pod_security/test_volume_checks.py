"""Volume types of the restricted level."""

from __future__ import annotations

import pytest

from tests.unit.embedded.apiserver.admitting.pod_security.pods import a_pod, said
from volcano.embedded.apiserver.admitting.pod_security.volume_checks import RESTRICTED_VOLUME_TYPES, restricted_volumes


@pytest.mark.parametrize("kind", sorted(RESTRICTED_VOLUME_TYPES))
def test_these_types_are_allowed(kind: str):
    assert said(restricted_volumes, a_pod({}, volumes=[{"name": "v", kind: {}}])) == ""


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        ([{"name": "v", "hostPath": {}}], 'volume "v" uses restricted volume type "hostPath"'),
        (
            [{"name": "v", "nfs": {}}, {"name": "w", "hostPath": {}}],
            'volumes "v", "w" use restricted volume types "hostPath", "nfs"',
        ),
    ],
)
def test_other_types_are_not(volumes: list[dict], expected: str):
    assert said(restricted_volumes, a_pod({}, volumes=volumes)) == f"restricted volume types ({expected})"
