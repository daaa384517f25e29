"""Claims are made from the templates that pods name, and go with their pods."""

from __future__ import annotations

from typing import Any

from volcano.api.core import Pod, ResourceClaim
from volcano.embedded.cluster.resource_claims import POD_CLAIM_NAME, ResourceClaimController
from volcano.testing.pure_world import PureWorld

REQUESTS = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]}}


def a_template(name: str = "gpu") -> dict[str, Any]:
    metadata = {"labels": {"team": "a"}, "annotations": {"note": "n"}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name},
        "spec": {"metadata": metadata, "spec": REQUESTS},
    }


def a_pod(name: str = "p", *, uid: str = "", **entry: str) -> dict[str, Any]:
    entry = entry or {"resourceClaimTemplateName": "gpu"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "uid": uid or f"uid-{name}"},
        "spec": {"containers": [{"name": "c"}], "resourceClaims": [{"name": "device", **entry}]},
    }


def a_world(*objects: dict[str, Any]) -> PureWorld:
    return PureWorld(*objects, controllers=[ResourceClaimController()]).settle()


def told(world: PureWorld, name: str = "p") -> dict[str, str | None]:
    pod = next(pod for pod in world.all(Pod) if pod.name == name)
    return {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}


def test_a_pod_gets_a_claim_from_its_template():
    world = a_world(a_template(), a_pod())

    (claim,) = world.all(ResourceClaim)

    assert claim.spec == REQUESTS
    assert claim.labels == {"team": "a"}
    assert claim.annotations == {"note": "n", POD_CLAIM_NAME: "device"}
    assert claim.controller is not None
    assert (claim.controller.kind, claim.controller.uid) == ("Pod", "uid-p")
    assert told(world) == {"device": claim.name}


def test_each_pod_has_a_claim_of_its_own_also_under_the_same_name():
    first = a_world(a_template(), a_pod("a"), a_pod("b"))
    again = a_world(a_template(), a_pod("a", uid="another"))

    names = {claim.name for claim in (*first.all(ResourceClaim), *again.all(ResourceClaim))}

    assert len(names) == 3


def test_a_pod_waits_for_a_template_that_comes_later():
    world = a_world(a_pod())
    assert world.all(ResourceClaim) == []
    assert "FailedResourceClaimCreation" in world.reasons()

    world.put(a_template())
    world.settle()

    assert len(world.all(ResourceClaim)) == 1
    assert set(told(world)) == {"device"}


def test_a_claim_that_the_pod_names_itself_is_left_alone():
    world = a_world(a_template(), a_pod(resourceClaimName="mine"))

    assert world.all(ResourceClaim) == []
    assert told(world) == {}


def test_a_claim_goes_when_its_pod_has_finished():
    world = a_world(a_template(), a_pod())

    world.change(Pod, "p", {"status": {"phase": "Succeeded"}})
    world.settle()

    assert world.all(ResourceClaim) == []
