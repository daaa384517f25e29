"""RBAC: rules, bindings, aggregation, and what one rule covers of another."""

from __future__ import annotations

import msgspec
import pytest

from volcano.embedded.apiserver.access.authorization import AccessRequest, PolicyRule, RoleBasedAccess, denial
from volcano.embedded.apiserver.store.contract import ObjectKey, Write
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.transport import User

RBAC = "rbac.authorization.k8s.io"
ANN = User("ann", ("devs", "system:authenticated"))


async def put(store: MemoryStore, plural: str, name: str, body: dict, namespace: str = "") -> None:
    raw = msgspec.json.encode({"metadata": {"name": name, "namespace": namespace, **body.pop("metadata", {})}, **body})
    await store.write(Write(ObjectKey(f"{plural}.{RBAC}", namespace, name), 0, lambda _: raw))


def rule(*resources: str, verbs: tuple[str, ...] = ("get",), names: tuple[str, ...] = ()) -> dict:
    return {"verbs": list(verbs), "apiGroups": [""], "resources": list(resources), "resourceNames": list(names)}


def binding(role: str, kind: str = "ClusterRole", **subject: str) -> dict:
    return {"roleRef": {"apiGroup": RBAC, "kind": kind, "name": role}, "subjects": [subject]}


async def test_a_cluster_binding_holds_everywhere_and_a_binding_in_its_namespace():
    store = MemoryStore()
    access = RoleBasedAccess(store)
    await put(store, "clusterroles", "pods", {"rules": [rule("pods")]})
    await put(store, "roles", "secrets", {"rules": [rule("secrets")]}, "here")
    await put(
        store,
        "clusterrolebindings",
        "a",
        binding("pods", kind="ClusterRole") | {"subjects": [{"kind": "Group", "name": "devs"}]},
    )
    await put(
        store, "rolebindings", "b", binding("secrets", "Role") | {"subjects": [{"kind": "User", "name": "ann"}]}, "here"
    )

    assert access.allows(ANN, AccessRequest("get", "", "pods", namespace="anywhere"))
    assert access.allows(ANN, AccessRequest("get", "", "secrets", namespace="here"))
    assert not access.allows(ANN, AccessRequest("get", "", "secrets", namespace="there"))
    assert not access.allows(ANN, AccessRequest("list", "", "pods"))
    assert not access.allows(User("bob"), AccessRequest("get", "", "pods"))


async def test_what_was_worked_out_is_forgotten_when_a_role_changes():
    store = MemoryStore()
    access = RoleBasedAccess(store)
    await put(store, "clusterrolebindings", "a", binding("late") | {"subjects": [{"kind": "User", "name": "ann"}]})
    assert not access.allows(ANN, AccessRequest("get", "", "pods"))

    await put(store, "clusterroles", "late", {"rules": [rule("pods")]})

    assert access.allows(ANN, AccessRequest("get", "", "pods"))


async def test_a_service_account_is_named_by_its_namespace():
    store = MemoryStore()
    access = RoleBasedAccess(store)
    await put(store, "clusterroles", "r", {"rules": [rule("pods")]})
    subjects = [{"kind": "ServiceAccount", "namespace": "ns", "name": "robot"}]
    await put(store, "clusterrolebindings", "b", binding("r") | {"subjects": subjects})

    assert access.allows(User("system:serviceaccount:ns:robot"), AccessRequest("get", "", "pods"))
    assert not access.allows(User("system:serviceaccount:other:robot"), AccessRequest("get", "", "pods"))


async def test_aggregated_roles_add_up_even_in_circles():
    store = MemoryStore()
    access = RoleBasedAccess(store)
    for name, other, resource in (("one", "two", "pods"), ("two", "one", "nodes")):
        selector = {"clusterRoleSelectors": [{"matchLabels": {"to": name}}]}
        await put(
            store,
            "clusterroles",
            name,
            {"metadata": {"labels": {"to": other}}, "rules": [rule(resource)], "aggregationRule": selector},
        )
    await put(store, "clusterrolebindings", "b", binding("one") | {"subjects": [{"kind": "User", "name": "ann"}]})

    assert access.allows(ANN, AccessRequest("get", "", "pods"))
    assert access.allows(ANN, AccessRequest("get", "", "nodes"))


def test_masters_may_do_everything():
    assert RoleBasedAccess(MemoryStore()).allows(User("x", ("system:masters",)), AccessRequest("burn", "any", "thing"))


@pytest.mark.parametrize(
    ("resources", "ask", "allowed"),
    [
        (("pods",), AccessRequest("get", "", "pods"), True),
        (("pods",), AccessRequest("get", "", "pods", "log"), False),
        (("pods/log",), AccessRequest("get", "", "pods", "log"), True),
        (("*/log",), AccessRequest("get", "", "pods", "log"), True),
        (("*",), AccessRequest("get", "", "pods", "log"), True),
        (("pods",), AccessRequest("get", "apps", "pods"), False),
        (("pods",), AccessRequest("get", path="/metrics"), False),
    ],
)
def test_what_a_rule_names(resources: tuple[str, ...], ask: AccessRequest, allowed: bool):
    assert PolicyRule(("get",), ("",), resources).allows(ask) is allowed


def test_names_in_a_rule_mean_single_objects():
    only = PolicyRule(("get", "list"), ("",), ("pods",), ("mine",))

    assert only.allows(AccessRequest("get", "", "pods", name="mine"))
    assert not only.allows(AccessRequest("get", "", "pods", name="yours"))
    assert not only.allows(AccessRequest("list", "", "pods"))


@pytest.mark.parametrize(
    ("pattern", "path", "allowed"),
    [
        ("/healthz", "/healthz", True),
        ("/healthz", "/healthz/a", False),
        ("/healthz/*", "/healthz/a", True),
        ("*", "/x", True),
    ],
)
def test_paths(pattern: str, path: str, allowed: bool):
    assert PolicyRule(("get",), non_resource_urls=(pattern,)).allows(AccessRequest("get", path=path)) is allowed


def test_coverage():
    wide = PolicyRule(("*",), ("*",), ("*",))
    narrow = PolicyRule(("get",), ("",), ("pods",), ("a",))

    assert wide.covers(narrow)
    assert not narrow.covers(wide)
    assert narrow.covers(narrow)
    assert not narrow.covers(PolicyRule(("get",), ("",), ("pods",)))


def test_a_refusal_in_kubernetes_words():
    ask = AccessRequest("list", "apps", "deployments", "scale", "ns")

    assert (
        denial(ANN, ask)
        == 'User "ann" cannot list resource "deployments/scale" in API group "apps" in the namespace "ns"'
    )
    assert (
        denial(ANN, AccessRequest("get", "", "nodes"))
        == 'User "ann" cannot get resource "nodes" in API group "" at the cluster scope'
    )
    assert denial(ANN, AccessRequest("get", path="/x")) == 'User "ann" cannot get path "/x"'


async def test_roles_that_all_aggregate_each_other_are_each_read_once():
    store = MemoryStore()
    access = RoleBasedAccess(store)
    for number in range(40):
        body = {
            "metadata": {"labels": {"circle": "yes"}},
            "rules": [rule(f"kind{number}")],
            "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"circle": "yes"}}]},
        }
        await put(store, "clusterroles", f"role{number}", body)
    await put(store, "clusterrolebindings", "a", binding("role0") | {"subjects": [{"kind": "User", "name": "ann"}]})

    assert len(access.rules_for(ANN, "")) == 40
