"""Claims and volumes find each other."""

from __future__ import annotations

import pytest

from volcano.api.core import PersistentVolume, PersistentVolumeClaim
from volcano.embedded.cluster.volumes import BIND_COMPLETED, VolumeBinderController
from volcano.testing.pure_world import Killed, PureWorld


def a_volume(name: str, size: str = "1Gi", *, storage_class: str = "", claim: dict | None = None, **spec) -> dict:
    body = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": storage_class, **spec}
    if claim is not None:
        body["claimRef"] = claim
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": body}


def a_claim(name: str = "c", size: str = "1Gi", *, storage_class: str = "", **spec) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
            "storageClassName": storage_class,
            **spec,
        },
    }


def a_class(name: str, mode: str = "Immediate") -> dict:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": "volcano.sh/folder",
        "volumeBindingMode": mode,
    }


def a_world(*objects: dict) -> PureWorld:
    return PureWorld(*objects, controllers=[VolumeBinderController()]).settle()


def outcome(world: PureWorld) -> dict[str, tuple[str, str]]:
    claims = {c.name: (c.status.phase, c.spec.volume_name) for c in world.all(PersistentVolumeClaim)}
    volumes = {
        v.name: (v.status.phase, v.spec.claim_ref.name if v.spec.claim_ref else "") for v in world.all(PersistentVolume)
    }
    return claims | volumes


def test_a_claim_gets_the_smallest_volume_that_fits():
    world = a_world(a_volume("big", "10Gi"), a_volume("small", "512Mi"), a_volume("right", "2Gi"), a_claim())

    assert outcome(world) == {
        "c": ("Bound", "right"), "right": ("Bound", "c"), "big": ("Available", ""), "small": ("Available", ""),
    }  # fmt: skip
    assert world.raw(PersistentVolumeClaim, "c")["status"]["capacity"] == {"storage": "2Gi"}


@pytest.mark.parametrize(
    "volume",
    [
        a_volume("v", storage_class="other"),
        a_volume("v", "1Mi"),
        a_volume("v", accessModes=["ReadOnlyMany"]),
        a_volume("v", volumeMode="Block"),
        a_volume("v", claim={"namespace": "default", "name": "someone-else"}),
    ],
    ids=["class", "size", "access", "mode", "taken"],
)
def test_a_volume_that_does_not_fit_is_not_taken(volume: dict):
    world = a_world(volume, a_claim())

    assert outcome(world)["c"] == ("Pending", "")


def test_a_claim_may_choose_volumes_by_label():
    labelled = a_volume("l", "5Gi")
    labelled["metadata"]["labels"] = {"disk": "fast"}

    world = a_world(a_volume("v"), labelled, a_claim(selector={"matchLabels": {"disk": "fast"}}))

    assert outcome(world)["c"] == ("Bound", "l")


def test_a_volume_that_names_a_claim_is_bound_to_it_even_if_the_class_waits():
    given = a_volume("v", storage_class="standard", claim={"namespace": "default", "name": "c", "uid": "uid-c"})

    world = a_world(a_class("standard", "WaitForFirstConsumer"), given, a_claim(storage_class="standard"))

    assert outcome(world) == {"c": ("Bound", "v"), "v": ("Bound", "c")}


def test_a_claim_that_waits_for_its_consumer_takes_no_volume_by_itself():
    world = a_world(
        a_class("local", "WaitForFirstConsumer"), a_volume("v", storage_class="local"), a_claim(storage_class="local")
    )

    assert outcome(world)["c"] == ("Pending", "")


def test_a_claim_may_name_its_volume():
    world = a_world(a_volume("v"), a_volume("w"), a_claim(volumeName="w"))

    assert outcome(world)["c"] == ("Bound", "w")
    assert outcome(world)["w"] == ("Bound", "c")


def test_a_claim_that_named_its_volume_is_marked_as_bound_for_schedulers():
    world = a_world(a_volume("w"), a_claim(volumeName="w"))

    (claim,) = world.all(PersistentVolumeClaim)

    assert claim.annotations[BIND_COMPLETED] == "yes"


def test_a_claim_that_waits_for_its_volume_is_not_marked_as_bound():
    world = a_world(a_claim(volumeName="w"))

    (claim,) = world.all(PersistentVolumeClaim)

    assert (claim.status.phase, claim.annotations) == ("Pending", {})


def test_a_volume_that_comes_later_is_taken():
    world = a_world(a_claim())
    assert outcome(world)["c"] == ("Pending", "")

    world.put(a_volume("v"))
    world.settle()

    assert outcome(world) == {"c": ("Bound", "v"), "v": ("Bound", "c")}


def test_a_volume_is_released_when_its_claim_is_gone_and_not_taken_again():
    world = a_world(a_volume("v"), a_claim())

    world.delete(PersistentVolumeClaim, "c")
    world.settle()
    assert outcome(world) == {"v": ("Released", "c")}

    newer = a_claim()
    newer["metadata"]["uid"] = "another"
    world.put(newer)
    world.settle()
    assert outcome(world) == {"v": ("Released", "c"), "c": ("Pending", "")}


def test_a_claim_whose_volume_is_gone_is_lost():
    world = a_world(a_volume("v"), a_claim())

    world.delete(PersistentVolume, "v")
    world.settle()

    assert outcome(world) == {"c": ("Lost", "v")}
    assert "ClaimLost" in world.reasons()


def test_two_claims_never_share_a_volume():
    world = a_world(a_volume("v"), a_claim("a"), a_claim("b"))

    assert sorted(phase for phase, _ in (outcome(world)["a"], outcome(world)["b"])) == ["Bound", "Pending"]


def test_a_kill_between_any_two_writes_ends_the_same():
    given = (a_volume("v", "2Gi"), a_volume("w", "1Gi"), a_claim("a"), a_claim("b"))
    whole = a_world(*given)

    for writes in range(whole.writes):
        world = PureWorld(*given, controllers=[VolumeBinderController()])
        world.stop_after = writes
        with pytest.raises(Killed):
            world.settle()
        world.stop_after = None
        world.restart()
        world.settle()
        assert sorted(outcome(world).values()) == sorted(outcome(whole).values())
