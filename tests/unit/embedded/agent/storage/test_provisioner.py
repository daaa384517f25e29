from __future__ import annotations

from pathlib import Path

import pytest

from volcano.api.core import PersistentVolume, PersistentVolumeClaim
from volcano.api.decode import decode_object
from volcano.embedded.agent.storage.provisioner import (
    FINALIZER,
    PROVISIONED_BY,
    PROVISIONER,
    FolderProvisioner,
    is_ours,
    standard_class,
)
from volcano.embedded.cluster.volumes import VolumeBinderController
from volcano.testing.pure_world import PureWorld

ROOT = Path("/volumes")


def a_claim(name: str = "data", **spec: object):
    chosen = spec.pop("selected", "n1")
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": {"volume.kubernetes.io/selected-node": chosen} if chosen else {},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "standard",
            **spec,
        },
    }


def a_class(**fields: object):
    return {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", **standard_class(), **fields}


def a_world(*objects):
    world = PureWorld(*objects, controllers=[FolderProvisioner(ROOT, ["n1", "n2"]), VolumeBinderController()])
    world.settle()
    return world


def volumes(world):
    return {each.name: each for each in world.all(PersistentVolume)}


def test_a_claim_whose_node_is_chosen_gets_a_folder_and_is_bound():
    world = a_world(a_class(), a_claim())

    claim = world.get(PersistentVolumeClaim, "data", "default")
    assert claim is not None
    volume = volumes(world)[f"pvc-{claim.uid}"]
    assert volume.spec.host_path == {"path": f"/volumes/default_data_{claim.uid}", "type": "DirectoryOrCreate"}
    assert volume.status.phase == "Bound"
    assert (claim.status.phase, claim.spec.volume_name) == ("Bound", volume.name)
    assert volume.metadata.finalizers == [FINALIZER]


@pytest.mark.parametrize("selected", ["", "somewhere-else"])
def test_a_claim_waits_for_its_first_consumer_on_one_of_our_nodes(selected: str):
    assert volumes(a_world(a_class(), a_claim(selected=selected))) == {}


def test_a_class_that_binds_at_once_does_not_wait():
    world = a_world(a_class(volumeBindingMode="Immediate"), a_claim(selected=""))

    assert len(volumes(world)) == 1


def test_a_claim_that_names_no_class_gets_the_default_one():
    claim = a_claim()
    del claim["spec"]["storageClassName"]

    world = a_world(a_class(), claim)

    found = world.get(PersistentVolumeClaim, "data", "default")
    assert found is not None and found.spec.storage_class_name == "standard"
    assert len(volumes(world)) == 1


def test_another_provisioners_claim_is_left_alone():
    assert volumes(a_world(a_class(provisioner="example.com/disk"), a_claim())) == {}


@pytest.mark.parametrize(("policy", "stays"), [("Delete", False), ("Retain", True)])
def test_a_released_volume_goes_or_stays_as_its_class_says(policy: str, stays: bool):
    world = a_world(a_class(reclaimPolicy=policy), a_claim())

    world.delete(PersistentVolumeClaim, "data", "default")
    world.settle()

    [volume] = volumes(world).values()
    assert volume.status.phase == "Released"
    assert volume.is_deleting is not stays


@pytest.mark.parametrize("path", ["/volumes/../etc", "/etc", "/volumes", "/volumes/a/b", "", "relative"])
def test_only_folders_directly_below_the_root_are_ours_to_remove(path: str):
    body = {
        "metadata": {"name": "v", "annotations": {PROVISIONED_BY: PROVISIONER}},
        "spec": {"hostPath": {"path": path}},
    }
    volume = decode_object(PersistentVolume, body)

    assert not is_ours(volume, ROOT)
