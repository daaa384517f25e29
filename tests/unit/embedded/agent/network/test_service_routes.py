"""Where the ports of a service lead."""

from __future__ import annotations

from typing import Any

import msgspec

from volcano.api.core import EndpointSlice, Service
from volcano.embedded.agent.network.service_routes import RouteTarget, routes_of


def a_service(**spec: Any) -> Service:
    ports = [{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30080}]
    metadata = {"name": "web", "namespace": "default"}
    return msgspec.convert({"metadata": metadata, "spec": {"clusterIP": "10.96.0.20", "ports": ports, **spec}}, Service)


def a_slice(*endpoints: dict[str, Any], port: str = "http", kind: str = "IPv4") -> EndpointSlice:
    body = {"metadata": {"name": "web", "namespace": "default"}, "addressType": kind, "endpoints": list(endpoints)}
    return msgspec.convert({**body, "ports": [{"name": port, "port": 8080, "protocol": "TCP"}]}, EndpointSlice)


def an_endpoint(address: str, **conditions: bool) -> dict[str, Any]:
    return {"addresses": [address], "conditions": conditions, "targetRef": {"uid": f"uid-{address}"}}


READY = an_endpoint("10.64.0.1", ready=True)
DRAINING = an_endpoint("10.64.0.2", ready=False, serving=True, terminating=True)


def test_a_port_leads_to_ready_endpoints_with_its_name():
    slices = [a_slice(READY, DRAINING), a_slice(an_endpoint("10.64.0.9", ready=True), port="other")]

    (route,) = routes_of(a_service(), slices)

    assert (route.address, route.port, route.protocol) == ("10.96.0.20", 80, "TCP")
    assert route.targets == (RouteTarget("10.64.0.1", 8080, "uid-10.64.0.1"),)


def test_while_none_is_ready_those_that_end_but_serve_are_used():
    (route,) = routes_of(a_service(), [a_slice(DRAINING, an_endpoint("10.64.0.3", ready=False))])
    assert [target.address for target in route.targets] == ["10.64.0.2"]


def test_headless_and_external_services_have_no_routes():
    assert routes_of(a_service(clusterIP="None"), [a_slice(READY)]) == ()
    assert routes_of(a_service(type="ExternalName", externalName="x", clusterIP=""), []) == ()


def test_session_affinity_has_its_time_or_three_hours():
    config = {"clientIP": {"timeoutSeconds": 60}}
    assert routes_of(a_service(), [])[0].affinity_seconds == 0
    assert routes_of(a_service(sessionAffinity="ClientIP"), [])[0].affinity_seconds == 10800
    (route,) = routes_of(a_service(sessionAffinity="ClientIP", sessionAffinityConfig=config), [])
    assert route.affinity_seconds == 60


def test_only_services_of_that_type_have_node_ports():
    assert routes_of(a_service(type="NodePort"), [])[0].node_port == 30080
    assert routes_of(a_service(type="ClusterIP"), [])[0].node_port == 0
