"""APIServices: created, refused and shown as kube-apiserver does."""

from __future__ import annotations

from typing import Any

import pytest

from tests.running_server import Client

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
TABLE = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
MISSING = {"namespace": "default", "name": "nobody"}


def an_api_service(group: str, **spec: Any) -> dict[str, Any]:
    given = {"group": group, "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10, **spec}
    metadata = {"name": f"v1.{group}"}
    return {"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": metadata, "spec": given}


def test_one_without_a_service_is_local_and_available(api: Client):
    made = api.create(API_SERVICES, an_api_service("local.example.com"))

    try:
        condition = made.body["status"]["conditions"][0]
        row = api("GET", f"{API_SERVICES}/v1.local.example.com", headers=TABLE).body["rows"][0]
        assert (condition["type"], condition["status"], condition["reason"]) == ("Available", "True", "Local")
        assert row["cells"][:3] == ["v1.local.example.com", "Local", "True"]
    finally:
        api.delete(f"{API_SERVICES}/v1.local.example.com")


def test_the_port_of_a_service_is_443_unless_it_is_given(api: Client):
    made = api.create(API_SERVICES, an_api_service("ports.example.com", service=MISSING, insecureSkipTLSVerify=True))

    try:
        assert made.body["spec"]["service"] == {**MISSING, "port": 443}
    finally:
        api.delete(f"{API_SERVICES}/v1.ports.example.com")


def test_its_group_cannot_be_asked_while_nobody_answers(api: Client):
    api.create(API_SERVICES, an_api_service("nobody.example.com", service=MISSING, insecureSkipTLSVerify=True))

    try:
        answer = api.get("/apis/nobody.example.com/v1/things")
        assert answer.status == 503
    finally:
        api.delete(f"{API_SERVICES}/v1.nobody.example.com")


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        ({"version": "v2"}, "metadata.name"),
        ({"groupPriorityMinimum": 0}, "spec.groupPriorityMinimum"),
        ({"groupPriorityMinimum": 20_001}, "spec.groupPriorityMinimum"),
        ({"versionPriority": 0}, "spec.versionPriority"),
        ({"versionPriority": 1_001}, "spec.versionPriority"),
        ({"insecureSkipTLSVerify": True}, "spec.insecureSkipTLSVerify"),
        ({"caBundle": "Cg=="}, "spec.caBundle"),
        ({"service": {"name": "a"}}, "spec.service.namespace"),
        ({"service": {"namespace": "a"}}, "spec.service.name"),
        ({"service": {**MISSING, "port": 70_000}}, "spec.service.port"),
        ({"service": MISSING, "insecureSkipTLSVerify": True, "caBundle": "Cg=="}, "spec.insecureSkipTLSVerify"),
    ],
)
def test_what_is_wrong_is_refused_with_its_path(api: Client, spec: dict[str, Any], path: str):
    answer = api.create(API_SERVICES, an_api_service("bad.example.com", **spec))

    assert answer.status == 422, answer
    assert path in [cause["field"] for cause in answer.body["details"]["causes"]]
