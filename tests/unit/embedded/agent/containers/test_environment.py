from __future__ import annotations

import pytest

from tests.unit.embedded.agent.kit import a_pod
from volcano.embedded.agent.containers.environment import (
    Missing,
    References,
    content_of,
    environment_of,
    expand,
    field_value,
    resource_value,
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)", "1"),
        ("x$(A)y$(B)", "x1y2"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$(NOBODY)", "$(NOBODY)"),
        ("$A ${A} $", "$A ${A} $"),
        ("$(A", "$(A"),
        ("$()", "$()"),
    ],
)
def test_references_are_expanded_as_kubernetes_does(text: str, expected: str):
    assert expand(text, {"A": "1", "B": "2"}) == expected


def container(**fields: object):
    pod = a_pod(containers=[{"name": "main", "image": "x", **fields}])
    return pod, pod.spec.containers[0]


def test_later_variables_see_earlier_ones_and_those_of_sources():
    pod, main = container(
        env=[{"name": "A", "value": "$(FROM) $(B)"}, {"name": "B", "value": "$(A)!"}],
        envFrom=[{"prefix": "P_", "configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}],
    )
    references = References({"c": {"FROM": b"c", "not a name": b"x"}}, {"s": {"FROM": b"s"}})

    assert environment_of(pod, main, references) == {"P_FROM": "c", "FROM": "s", "A": "s $(B)", "B": "s $(B)!"}


def test_binary_entries_of_a_config_map_are_no_variables():
    pod, main = container(envFrom=[{"configMapRef": {"name": "c"}}, {"secretRef": {"name": "s"}}])
    references = References({"c": content_of({"A": "1"}, {"B": "AAEC"})}, {"s": content_of(None, {"C": "Mw=="})})

    assert environment_of(pod, main, references) == {"A": "1", "C": "3"}


def test_a_variable_that_would_hold_a_null_byte_is_named():
    pod, main = container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}])

    with pytest.raises(Missing, match="key k in secret s holds a null byte"):
        environment_of(pod, main, References({}, {"s": content_of(None, {"k": "AAEC"})}))


@pytest.mark.parametrize(
    "source",
    [
        {"configMapKeyRef": {"name": "c", "key": "nope"}},
        {"configMapKeyRef": {"name": "nope", "key": "k"}},
        {"secretKeyRef": {"name": "nope", "key": "k"}},
        {"fieldRef": {"fieldPath": "status.nope"}},
        {"resourceFieldRef": {"containerName": "nope", "resource": "limits.cpu"}},
    ],
)
def test_what_is_missing_is_named(source: dict[str, object]):
    pod, main = container(env=[{"name": "A", "valueFrom": source}])

    with pytest.raises(Missing, match="nope"):
        environment_of(pod, main, References({"c": {"k": b"v"}}))


def test_what_is_optional_may_be_missing():
    pod, main = container(
        env=[{"name": "A", "valueFrom": {"secretKeyRef": {"name": "nope", "key": "k", "optional": True}}}],
        envFrom=[{"configMapRef": {"name": "nope", "optional": True}}],
    )

    assert environment_of(pod, main, References()) == {}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("metadata.name", "pod"),
        ("metadata.namespace", "default"),
        ("metadata.uid", "u1"),
        ("metadata.labels['app']", "web"),
        ("metadata.annotations['none']", ""),
        ("metadata.labels", 'app="web"\nquote="a\\"b"'),
        ("spec.nodeName", "n"),
        ("status.podIP", "10.0.0.9"),
        ("status.hostIP", "192.0.2.1"),
    ],
)
def test_fields_of_the_pod(path: str, expected: str):
    pod = a_pod(metadata={"labels": {"app": "web", "quote": 'a"b'}})

    assert field_value(pod, path, References(address="10.0.0.9", host_address="192.0.2.1")) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({"resource": "limits.cpu"}, "2"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "1500"),
        ({"resource": "requests.memory", "divisor": "1Mi"}, "64"),
        ({"resource": "requests.memory"}, str(64 * 1024 * 1024)),
        ({"resource": "limits.memory"}, "100"),
        ({"resource": "requests.cpu"}, "0"),
    ],
)
def test_amounts_of_the_container(selector: dict[str, str], expected: str):
    pod, main = container(resources={"limits": {"cpu": "1500m"}, "requests": {"memory": "64Mi"}})

    assert resource_value(pod, main, selector, References(allocatable={"memory": "100"})) == expected


def test_entries_are_bytes_whether_plain_or_encoded():
    assert content_of({"a": "x"}, {"b": "AP8="}) == {"a": b"x", "b": b"\x00\xff"}
