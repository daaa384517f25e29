"""The order of the versions of a group."""

from __future__ import annotations

from volcano.embedded.apiserver.registry.resources import version_rank


def test_versions_are_ordered_by_maturity():
    versions = ["v1beta1", "foo", "v2", "v1alpha1", "v1", "v1beta2", "v11"]

    assert sorted(versions, key=version_rank) == ["v11", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]
