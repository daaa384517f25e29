"""Namespaces that go, and what each must have."""

from __future__ import annotations

from datetime import timedelta

from volcano.api.core import ConfigMap, Namespace, ServiceAccount
from volcano.embedded.cluster.namespaces import NamespaceController, RootCertificateController, ServiceAccountController
from volcano.testing.pure_world import PureWorld


def a_namespace(name: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name},
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def a_config_map(name: str, namespace: str, **metadata) -> dict:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, **metadata}}


def test_a_namespace_goes_after_all_that_is_in_it():
    held = a_config_map("held", "n", finalizers=["example.com/hold"])
    world = PureWorld(
        a_namespace("n"), a_namespace("m"), held, a_config_map("a", "n"), a_config_map("b", "m"),
        controllers=[NamespaceController()],
    ).settle()  # fmt: skip

    world.delete(Namespace, "n")
    world.settle()
    assert [(each.namespace, each.name) for each in world.all(ConfigMap)] == [("m", "b"), ("n", "held")]
    assert world.raw(Namespace, "n")["status"]["phase"] == "Terminating"

    world.change(ConfigMap, "held", {"metadata": {"finalizers": None}}, "n")
    world.advance(timedelta(seconds=10))
    assert [each.name for each in world.all(Namespace)] == ["m"]
    assert [each.name for each in world.all(ConfigMap)] == ["b"]


def test_a_namespace_that_is_not_deleted_is_left_alone():
    world = PureWorld(a_namespace("n"), a_config_map("a", "n"), controllers=[NamespaceController()]).settle()

    assert world.writes == 0


def test_an_empty_namespace_goes_at_once():
    world = PureWorld(a_namespace("n"), controllers=[NamespaceController()]).settle()

    world.delete(Namespace, "n")
    world.settle()

    assert world.all(Namespace) == []


def test_more_than_fits_one_plan_goes_in_several():
    contents = [a_config_map(f"c{i}", "n") for i in range(1200)]
    world = PureWorld(a_namespace("n"), *contents, controllers=[NamespaceController()]).settle()

    world.delete(Namespace, "n")
    world.advance(timedelta(minutes=1))

    assert world.all(Namespace) == []


def test_every_namespace_has_a_default_service_account():
    world = PureWorld(a_namespace("n"), controllers=[ServiceAccountController()]).settle()
    assert [each.name for each in world.all(ServiceAccount)] == ["default"]

    world.delete(ServiceAccount, "default", "n")
    world.settle()

    assert [each.name for each in world.all(ServiceAccount)] == ["default"]


def test_every_namespace_has_the_root_certificate():
    world = PureWorld(a_namespace("n"), controllers=[RootCertificateController(certificate="PEM")]).settle()
    assert world.raw(ConfigMap, "kube-root-ca.crt", "n")["data"] == {"ca.crt": "PEM"}

    world.change(ConfigMap, "kube-root-ca.crt", {"data": {"ca.crt": "other"}}, "n")
    world.settle()

    assert world.raw(ConfigMap, "kube-root-ca.crt", "n")["data"] == {"ca.crt": "PEM"}
