"""ClusterIPs and node ports: distinct also for services made at the same time, kept, refused when taken, freed."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.running_server import Answer, Client

SERVICES_AT_ONCE = 100
THREADS = 20
PORTS = [{"port": 80}]


@pytest.fixture
def services(api: Client, namespace: str) -> Iterator[str]:
    path = f"/api/v1/namespaces/{namespace}/services"
    yield path
    for found in api.get(path).body["items"]:
        api.delete(f"{path}/{found['metadata']['name']}")


def create(api: Client, services: str, name: str, **spec: Any) -> Answer:
    return api.create(services, {"metadata": {"name": name}, "spec": {"ports": PORTS, **spec}})


def test_services_created_at_the_same_time_have_different_addresses_and_ports(api: Client, services: str):
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(pool.map(lambda n: create(api, services, f"web-{n}", type="NodePort"), range(SERVICES_AT_ONCE)))

    assert {answer.status for answer in answers} == {201}
    assert len({answer.body["spec"]["clusterIP"] for answer in answers}) == SERVICES_AT_ONCE
    assert len({answer.body["spec"]["ports"][0]["nodePort"] for answer in answers}) == SERVICES_AT_ONCE


def test_one_of_several_who_ask_for_the_same_address_at_once_gets_it(api: Client, services: str):
    with ThreadPoolExecutor(THREADS) as pool:
        answers = list(
            pool.map(lambda n: create(api, services, f"web-{n}", clusterIP="10.96.3.3").status, range(THREADS))
        )

    assert sorted(answers) == [201] + [422] * (THREADS - 1)


def test_an_address_that_is_taken_is_refused_until_its_service_is_deleted(api: Client, services: str):
    assert create(api, services, "first", clusterIP="10.96.3.4").body["spec"]["clusterIPs"] == ["10.96.3.4"]

    refused = create(api, services, "second", clusterIP="10.96.3.4")

    assert refused.status == 422
    assert refused.body["message"] == (
        'Service "second" is invalid: spec.clusterIPs: Invalid value: ["10.96.3.4"]: '
        "failed to allocate IP 10.96.3.4: provided IP is already allocated"
    )
    api.delete(f"{services}/first")
    assert create(api, services, "second", clusterIP="10.96.3.4").status == 201


def test_a_node_port_that_is_taken_is_refused_until_its_service_has_no_use_for_it(api: Client, services: str):
    mine = [{"port": 80, "nodePort": 30100}]
    assert create(api, services, "first", type="NodePort", ports=mine).status == 201

    refused = create(api, services, "second", type="NodePort", ports=mine)

    assert refused.status == 422
    assert refused.body["message"] == (
        'Service "second" is invalid: spec.ports[0].nodePort: Invalid value: 30100: provided port is already allocated'
    )
    api.merge(f"{services}/first", {"spec": {"type": "ClusterIP"}})
    assert create(api, services, "second", type="NodePort", ports=mine).status == 201


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            {"clusterIP": "192.0.2.1"},
            'spec.clusterIPs: Invalid value: ["192.0.2.1"]: failed to allocate IP 192.0.2.1: '
            "the provided network does not match the current range",
        ),
        (
            {"clusterIP": "x.y"},
            'spec.clusterIPs[0]: Invalid value: "x.y": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
        ),
        (
            {"clusterIP": "fd00::1"},
            'spec.clusterIPs[0]: Invalid value: ["fd00::1"]: IPv6 is not configured on this cluster',
        ),
        (
            {"clusterIPs": ["10.96.3.9"]},
            'spec.clusterIPs: Invalid value: ["10.96.3.9"]: must be empty when `clusterIP` is not specified',
        ),
        (
            {"clusterIP": "10.96.3.10", "clusterIPs": ["10.96.3.11"]},
            'spec.clusterIPs: Invalid value: ["10.96.3.11"]: first value must match `clusterIP`',
        ),
        (
            {"clusterIP": "None", "type": "NodePort"},
            "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for NodePort services",
        ),
        (
            {"type": "ExternalName", "externalName": "a.b", "clusterIP": "10.96.3.4"},
            "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
        ),
        (
            {"ports": [{"port": 80, "nodePort": 30102}]},
            "spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'",
        ),
        (
            {"type": "NodePort", "ports": [{"port": 80, "nodePort": 80}]},
            "spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. "
            "The range of valid ports is 30000-32767",
        ),
        (
            {
                "type": "NodePort",
                "ports": [
                    {"name": "a", "port": 53, "nodePort": 30111},
                    {"name": "b", "port": 54, "nodePort": 30111},
                ],
            },
            "spec.ports[1].nodePort: Invalid value: 30111: provided port is already allocated",
        ),
    ],
)
def test_addresses_that_cannot_be_are_refused(api: Client, services: str, spec: dict[str, Any], message: str):
    answer = create(api, services, "web", **spec)

    assert answer.status == 422
    assert answer.body["message"] == f'Service "web" is invalid: {message}'


def test_the_protocols_of_a_port_share_a_node_port(api: Client, services: str):
    ports = [{"name": "a", "port": 53, "protocol": "TCP"}, {"name": "b", "port": 53, "protocol": "UDP"}]

    spec = create(api, services, "dns", type="NodePort", ports=ports).body["spec"]

    assert spec["ports"][0]["nodePort"] == spec["ports"][1]["nodePort"]


def test_a_replacement_may_leave_out_what_was_assigned(api: Client, services: str):
    before = create(api, services, "web", type="NodePort").body["spec"]

    after = api("PUT", f"{services}/web", {"metadata": {"name": "web"}, "spec": {"type": "NodePort", "ports": PORTS}})

    assert after.status == 200, after
    assert after.body["spec"]["clusterIP"] == before["clusterIP"]
    assert after.body["spec"]["ports"][0]["nodePort"] == before["ports"][0]["nodePort"]


def test_a_service_that_becomes_a_name_frees_its_address(api: Client, services: str):
    create(api, services, "web", clusterIP="10.96.3.5")

    changed = api.merge(f"{services}/web", {"spec": {"type": "ExternalName", "externalName": "a.b"}})

    assert "clusterIP" not in changed.body["spec"]
    assert create(api, services, "other", clusterIP="10.96.3.5").status == 201
    again = api.merge(f"{services}/web", {"spec": {"type": "ClusterIP", "externalName": None}})
    assert again.body["spec"]["clusterIP"] not in ("", "10.96.3.5")


def test_a_dry_run_takes_no_address(api: Client, services: str):
    body = {"metadata": {"name": "web"}, "spec": {"ports": PORTS, "clusterIP": "10.96.3.6"}}

    assert api.create(services, body, query={"dryRun": "All"}).status == 201
    assert api.create(services, body).status == 201
