"""The records of the cluster's domain, as Kubernetes' DNS specification has them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from volcano.api.core import EndpointSlice, Service
from volcano.embedded.agent.network.dns_answers import NO_DATA, NO_SUCH_NAME, ClusterNames
from volcano.embedded.agent.network.service_watch import SERVICE_INDEXES
from volcano.machinery.world import Mirror

WEB_PORTS = [{"name": "http", "port": 80, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"}]


def a_service(name: str, **spec: Any) -> Service:
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "shop"}, "spec": {"ports": WEB_PORTS, **spec}}, Service
    )


def a_slice(service: str, *endpoints: dict[str, Any]) -> EndpointSlice:
    labels = {"kubernetes.io/service-name": service}
    ports = [{"name": "http", "port": 8080, "protocol": "TCP"}]
    body = {"metadata": {"name": service, "namespace": "shop", "labels": labels}, "addressType": "IPv4"}
    return msgspec.convert({**body, "ports": ports, "endpoints": list(endpoints)}, EndpointSlice)


def an_endpoint(address: str, *, ready: bool = True, hostname: str = "") -> dict[str, Any]:
    return {"addresses": [address], "conditions": {"ready": ready}, **({"hostname": hostname} if hostname else {})}


@pytest.fixture
def names() -> ClusterNames:
    world = Mirror(indexes=SERVICE_INDEXES)
    world.put(a_service("web", clusterIP="10.96.0.20"))
    world.put(a_service("db", clusterIP="None"))
    world.put(a_service("empty", clusterIP="None"))
    world.put(a_service("out", type="ExternalName", externalName="Outside.Example."))
    world.put(a_slice("web", an_endpoint("10.64.0.30")))
    world.put(
        a_slice(
            "db",
            an_endpoint("10.64.0.12", hostname="db-1"),
            an_endpoint("10.64.0.11"),
            an_endpoint("10.64.0.13", ready=False, hostname="db-2"),
        )
    )
    return ClusterNames(world)


def values(names: ClusterNames, name: str, kind: str) -> list[Any]:
    found = names.resolve(name, kind)
    assert found is not None and found.exists
    return [record.value for record in found.records]


def test_a_service_has_its_cluster_address(names):
    assert values(names, "web.shop.svc.cluster.local", "A") == ["10.96.0.20"]
    assert values(names, "web.shop.svc.cluster.local", "AAAA") == []


def test_a_headless_service_has_the_addresses_of_its_ready_endpoints(names):
    assert values(names, "db.shop.svc.cluster.local", "A") == ["10.64.0.11", "10.64.0.12"]
    assert names.resolve("empty.shop.svc.cluster.local", "A") == NO_SUCH_NAME


def test_an_endpoint_is_found_by_its_host_name_or_by_its_address(names):
    assert values(names, "db-1.db.shop.svc.cluster.local", "A") == ["10.64.0.12"]
    assert values(names, "10-64-0-11.db.shop.svc.cluster.local", "A") == ["10.64.0.11"]
    assert names.resolve("db-2.db.shop.svc.cluster.local", "A") == NO_SUCH_NAME


def test_named_ports_have_service_records(names):
    assert values(names, "_http._tcp.web.shop.svc.cluster.local", "SRV") == [(0, 100, 80, "web.shop.svc.cluster.local")]
    found = names.resolve("_http._tcp.db.shop.svc.cluster.local", "SRV")
    assert {record.value for record in found.records} == {
        (0, 50, 8080, "db-1.db.shop.svc.cluster.local"),
        (0, 50, 8080, "10-64-0-11.db.shop.svc.cluster.local"),
    }
    assert {record.value for record in found.additional} == {"10.64.0.11", "10.64.0.12"}
    assert names.resolve("_http._udp.web.shop.svc.cluster.local", "SRV") == NO_SUCH_NAME
    assert len(values(names, "web.shop.svc.cluster.local", "SRV")) == 2


def test_an_external_name_is_an_alias(names):
    found = names.resolve("out.shop.svc.cluster.local", "A")
    assert [(record.kind, record.value) for record in found.records] == [("CNAME", "outside.example")]


def test_addresses_have_names(names):
    assert values(names, "20.0.96.10.in-addr.arpa", "PTR") == ["web.shop.svc.cluster.local"]
    assert values(names, "12.0.64.10.in-addr.arpa", "PTR") == ["db-1.db.shop.svc.cluster.local"]
    assert values(names, "11.0.64.10.in-addr.arpa", "PTR") == ["10-64-0-11.db.shop.svc.cluster.local"]


def test_an_unused_address_of_a_service_is_not_asked_for_elsewhere(names):
    assert names.resolve("99.0.96.10.in-addr.arpa", "PTR") == NO_SUCH_NAME
    assert names.resolve("1.2.0.192.in-addr.arpa", "PTR") is None


def test_a_pods_address_is_a_name(names):
    assert values(names, "10-64-0-11.shop.pod.cluster.local", "A") == ["10.64.0.11"]
    assert names.resolve("10-64-0-300.shop.pod.cluster.local", "A") == NO_SUCH_NAME


@pytest.mark.parametrize("name", ["cluster.local", "svc.cluster.local", "shop.svc.cluster.local", "pod.cluster.local"])
def test_a_name_between_others_exists_without_records(names, name):
    assert names.resolve(name, "A") == NO_DATA


@pytest.mark.parametrize(
    "name",
    ["nobody.shop.svc.cluster.local", "none.svc.cluster.local", "x.cluster.local", "a.b.c.web.shop.svc.cluster.local"],
)
def test_an_unknown_name_of_the_cluster_does_not_exist(names, name):
    assert names.resolve(name, "A") == NO_SUCH_NAME


def test_the_version_of_the_specification_is_published(names):
    assert values(names, "dns-version.cluster.local", "TXT") == ["1.1.0"]


def test_names_outside_are_not_ours(names):
    assert names.resolve("example.org", "A") is None
    assert names.resolve("notcluster.local", "A") is None
