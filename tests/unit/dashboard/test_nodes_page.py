"""Which shapes of pods still fit, and which free devices nothing can use."""

from __future__ import annotations

from volcano.api.core import Node, Pod
from volcano.api.meta import ObjectMeta
from volcano.api.pods.amounts import Amounts, amounts_of
from volcano.api.pods.stranded import PodShape, in_units
from volcano.dashboard.nodes_page import device_shapes, free_shape, stranded_devices

GPU = "nvidia.com/gpu"
NODES = [Node(metadata=ObjectMeta(name=name)) for name in ("a", "b")]
HAVE = {name: amounts_of({"cpu": "8", "memory": "32Gi", "pods": "110", GPU: "4"}) for name in ("a", "b")}


def used(**by_node: dict[str, str]) -> dict[str, Amounts]:
    return {name: amounts_of(amounts) for name, amounts in by_node.items()}


def test_a_shape_counts_the_pods_that_fit_by_every_resource():
    found = free_shape({"cpu": "2", GPU: "1"}, NODES, HAVE, used(a={"cpu": "5"}))

    assert (found.fits, found.nodes, found.largest) == (1 + 4, 2, 4)


def test_devices_have_shapes_of_their_own():
    shapes = device_shapes(HAVE)

    assert [shape[GPU] for shape in shapes] == ["1", "4"] and all("cpu" in shape for shape in shapes)
    assert device_shapes({"a": amounts_of({"cpu": "8", "hugepages-2Mi": "1Gi"})}) == []


def stranded(load: dict[str, Amounts], *shapes: dict[str, str]) -> dict[str, float]:
    known = [PodShape(in_units(amounts_of(shape)), 1.0, Pod()) for shape in shapes]
    return stranded_devices(NODES, HAVE, load, known)


def test_free_devices_that_the_pods_cannot_use_are_stranded():
    small, large = {"cpu": "1", "memory": "1Gi", GPU: "1"}, {"cpu": "4", "memory": "8Gi", GPU: "1"}
    assert stranded({}, small) == {}
    assert stranded(used(a={"cpu": "8", GPU: "1"}), small) == {GPU: 3}
    assert stranded(used(a={"cpu": "8", GPU: "4"}), small) == {}
    assert stranded(used(a={GPU: "4"}), large) == {GPU: 2}, "two of the four on b have no CPUs beside them"


def test_where_no_pod_asks_for_devices_none_is_called_stranded():
    assert stranded(used(a={"cpu": "8"})) == {}
    assert stranded(used(a={"cpu": "8"}), {"cpu": "1"}) == {}
