"""Where the pods of a Service answer."""

from __future__ import annotations

from volcano.api.core import Endpoints, EndpointSlice, Pod, Service
from volcano.embedded.cluster.endpoints import EndpointsController
from volcano.testing.pure_world import PureWorld


def a_service(*ports: dict, **spec) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "uid": "uid-s"},
        "spec": {"selector": {"app": "web"}, "ports": list(ports), **spec},
    }


def a_pod(name: str, ip: str = "10.0.0.1", *, ready: bool = True, app: str = "web", **spec) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app}},
        "spec": {
            "nodeName": "n",
            "containers": [{"name": "c", "ports": [{"name": "http", "containerPort": 8080}]}],
            **spec,
        },
        "status": {
            "phase": "Running",
            "podIP": ip,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def a_world(*objects: dict) -> PureWorld:
    return PureWorld(*objects, controllers=[EndpointsController()]).settle()


def subsets(world: PureWorld) -> list[dict]:
    return world.raw(Endpoints, "s")["subsets"]


def ips(subset: dict, field: str = "addresses") -> list[str]:
    return [address["ip"] for address in subset.get(field, [])]


HTTP = {"name": "http", "port": 80, "targetPort": "http", "protocol": "TCP"}


def test_ready_pods_are_addresses_and_others_are_not_ready_ones():
    world = a_world(a_service(HTTP), a_pod("a"), a_pod("b", "10.0.0.2", ready=False), a_pod("c", "10.0.0.3", app="db"))

    (subset,) = subsets(world)

    assert ips(subset) == ["10.0.0.1"]
    assert ips(subset, "notReadyAddresses") == ["10.0.0.2"]
    assert subset["ports"] == [{"name": "http", "port": 8080, "protocol": "TCP"}]
    assert subset["addresses"][0]["targetRef"] == {"kind": "Pod", "namespace": "default", "name": "a", "uid": "pod-a-1"}


def test_a_service_that_publishes_all_shows_all_as_ready():
    world = a_world(a_service(HTTP, publishNotReadyAddresses=True), a_pod("a", ready=False))

    assert ips(subsets(world)[0]) == ["10.0.0.1"]


def test_a_headless_service_without_ports_has_addresses_with_hostnames():
    service = a_service(clusterIP="None")
    world = a_world(service, a_pod("a", hostname="a", subdomain="s"))

    (subset,) = subsets(world)
    (slice_,) = world.all(EndpointSlice)

    assert subset["addresses"][0]["hostname"] == "a"
    assert "ports" not in subset
    assert slice_.endpoints[0]["hostname"] == "a"
    assert slice_.labels["service.kubernetes.io/headless"] == ""


def test_a_pod_that_becomes_ready_moves_over():
    world = a_world(a_service(HTTP), a_pod("a", ready=False))
    assert ips(subsets(world)[0]) == []

    world.change(Pod, "a", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    world.settle()

    assert ips(subsets(world)[0]) == ["10.0.0.1"]


def test_pods_that_end_or_are_deleted_disappear():
    world = a_world(a_service(HTTP), a_pod("a"), a_pod("b", "10.0.0.2"), a_pod("c", "10.0.0.3"))

    world.change(Pod, "a", {"status": {"phase": "Succeeded"}})
    world.delete(Pod, "b")
    world.change(Pod, "c", {"metadata": {"labels": {"app": "other"}}})
    world.settle()

    assert subsets(world) == []
    assert world.all(EndpointSlice)[0].endpoints == []


def test_a_pod_that_is_being_deleted_is_only_in_the_slice():
    pod = a_pod("a")
    pod["metadata"]["finalizers"] = ["example.com/hold"]
    world = a_world(a_service(HTTP), pod)

    world.delete(Pod, "a")
    world.settle()

    assert subsets(world) == []
    assert world.all(EndpointSlice)[0].endpoints[0]["conditions"] == {
        "ready": False,
        "serving": True,
        "terminating": True,
    }


def test_slices_hold_a_hundred_endpoints_each():
    pods = [a_pod(f"p{i:03}", f"10.0.{i // 250}.{i % 250}") for i in range(250)]

    world = a_world(a_service(HTTP), *pods)

    slices = world.all(EndpointSlice)
    assert sorted(len(each.endpoints) for each in slices) == [50, 100, 100]
    assert {each.labels["kubernetes.io/service-name"] for each in slices} == {"s"}
    assert {each.metadata.owner_references[0].uid for each in slices} == {"uid-s"}


def test_slices_that_are_not_needed_any_more_go():
    pods = [a_pod(f"p{i:03}", f"10.0.{i // 250}.{i % 250}") for i in range(120)]
    world = a_world(a_service(HTTP), *pods)
    assert len(world.all(EndpointSlice)) == 2

    for i in range(60):
        world.delete(Pod, f"p{i:03}")
    world.settle()

    assert len(world.all(EndpointSlice)) == 1


def test_pods_that_name_the_port_otherwise_form_another_subset():
    other = a_pod("b", "10.0.0.2")
    other["spec"]["containers"][0]["ports"][0]["containerPort"] = 9090

    world = a_world(a_service(HTTP), a_pod("a"), other, a_pod("c", "10.0.0.3", containers=[{"name": "c"}]))

    assert [(subset["ports"][0]["port"], ips(subset)) for subset in subsets(world)] == [
        (8080, ["10.0.0.1"]),
        (9090, ["10.0.0.2"]),
    ]


def test_a_service_without_a_selector_is_left_alone():
    world = a_world(a_service(HTTP, selector={}), a_pod("a"))

    assert world.writes == 0


def test_nothing_is_written_twice():
    world = a_world(a_service(HTTP), a_pod("a"), a_pod("b", "fd00::1"))
    writes = world.writes

    world.restart()
    world.settle()
    world.change(Service, "s", {"metadata": {"annotations": {"x": "y"}}})
    world.settle()

    assert world.writes == writes
