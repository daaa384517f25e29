"""CustomResourceDefinitions: anyone's kinds, with schema, status, scale, columns, and their end."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

import pytest

from tests.contract.bodies import a_crd
from tests.running_server import Client

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_numbers = itertools.count(1)


def established(api: Client, name: str) -> dict:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        crd = api.get(f"{CRDS}/{name}").body
        conditions = {c["type"]: c["status"] for c in crd.get("status", {}).get("conditions") or []}
        served = api.get(f"/apis/{crd['spec']['group']}/v1").status == 200
        if conditions.get("Established") == "True" and served:
            return crd
    raise AssertionError(crd)


@pytest.fixture
def widgets(api: Client, namespace: str) -> Iterator[str]:
    group = f"g{next(_numbers)}.example.com"
    extra = {
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
        "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
        "selectableFields": [{"jsonPath": ".spec.color"}],
    }  # fmt: skip
    assert api.create(CRDS, a_crd("widgets", group, **extra)).status == 201
    established(api, f"widgets.{group}")
    yield f"/apis/{group}/v1/namespaces/{namespace}/widgets"
    api.delete(f"{CRDS}/widgets.{group}")


def a_widget(widgets: str, name: str = "w", **spec) -> dict:
    return {
        "apiVersion": "/".join(widgets.split("/")[2:4]),
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"size": 1, **spec},
    }


def test_a_definition_is_established_and_discovered(api: Client, widgets: str):
    group = widgets.split("/")[2]

    crd = api.get(f"{CRDS}/widgets.{group}").body
    resources = api.get(f"/apis/{group}/v1").body["resources"]

    assert crd["status"]["acceptedNames"]["listKind"] == "WidgetList"
    assert crd["status"]["storedVersions"] == ["v1"]
    assert {r["name"] for r in resources} == {"widgets", "widgets/status", "widgets/scale"}


def test_defaults_are_filled_in_and_unknown_fields_pruned(api: Client, widgets: str):
    made = api.create(widgets, a_widget(widgets, nonsense=1)).body

    assert made["spec"] == {"size": 1, "color": "blue"}
    assert made["metadata"]["generation"] == 1


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"size": -1}, "spec.size: Invalid value: -1: spec.size in body should be greater than or equal to 0"),
        ({"size": "big"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"color": "green"}, 'spec.color: Unsupported value: "green": supported values: "blue", "red"'),
    ],
)
def test_the_schema_is_enforced_in_its_usual_words(api: Client, widgets: str, spec: dict, message: str):
    answer = api.create(widgets, a_widget(widgets, **spec))

    assert answer.status == 422
    assert message in answer.body["message"]


def test_what_is_required_is_missed(api: Client, widgets: str):
    widget = a_widget(widgets)
    del widget["spec"]["size"]

    answer = api.create(widgets, widget)

    assert "spec.size: Required value" in answer.body["message"]


def test_an_update_must_say_which_revision_it_saw(api: Client, widgets: str):
    api.create(widgets, a_widget(widgets))

    answer = api("PUT", f"{widgets}/w", a_widget(widgets, size=2))

    assert answer.status == 422
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer.body["message"]


def test_the_generation_follows_the_spec_and_not_the_status(api: Client, widgets: str):
    made = api.create(widgets, a_widget(widgets) | {"status": {"phase": "Done"}}).body
    assert "status" not in made

    status = api.merge(f"{widgets}/w/status", {"status": {"phase": "Done"}, "spec": {"size": 5}}).body
    spec = api.merge(f"{widgets}/w", {"status": {"phase": "Lost"}, "spec": {"size": 2}}).body

    assert (status["metadata"]["generation"], status["status"], status["spec"]["size"]) == (1, {"phase": "Done"}, 1)
    assert (spec["metadata"]["generation"], spec["status"], spec["spec"]["size"]) == (2, {"phase": "Done"}, 2)


def test_a_custom_resource_is_scaled(api: Client, widgets: str):
    api.create(widgets, a_widget(widgets, replicas=1))

    scaled = api.merge(f"{widgets}/w/scale", {"spec": {"replicas": 3}})

    assert scaled.body["kind"] == "Scale"
    assert api.get(f"{widgets}/w").body["spec"]["replicas"] == 3


def test_columns_and_selectable_fields_are_those_of_the_definition(api: Client, widgets: str):
    api.create(widgets, a_widget(widgets, "one", size=7))
    api.create(widgets, a_widget(widgets, "two", color="red"))

    table = api("GET", widgets, headers={"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).body
    red = api.get(widgets, fieldSelector="spec.color=red").body

    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Size"]
    assert table["rows"][0]["cells"] == ["one", 7]
    assert [w["metadata"]["name"] for w in red["items"]] == ["two"]


def test_strategic_patches_are_for_built_in_kinds(api: Client, widgets: str):
    api.create(widgets, a_widget(widgets))

    answer = api("PATCH", f"{widgets}/w", {}, content_type="application/strategic-merge-patch+json")

    assert answer.status == 415


def test_a_definition_takes_its_objects_along(api: Client, namespace: str):
    crd = a_crd("gadgets", "gone.example.com")
    api.create(CRDS, crd)
    established(api, "gadgets.gone.example.com")
    path = f"/apis/gone.example.com/v1/namespaces/{namespace}/gadgets"
    body = {"apiVersion": "gone.example.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": {"size": 1}}
    assert api.create(path, body).status == 201

    api.delete(f"{CRDS}/gadgets.gone.example.com")

    deadline = time.monotonic() + 10
    while api.get(f"{CRDS}/gadgets.gone.example.com").status != 404:
        assert time.monotonic() < deadline
    assert api.get(path).status == 404


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda spec: spec.pop("group"), "spec.group"),
        (lambda spec: spec.update(scope="Galaxy"), "spec.scope"),
        (lambda spec: spec["versions"][0].update(storage=False), "storage"),
        (lambda spec: spec["versions"][0].pop("schema"), "schema"),
        (lambda spec: spec["names"].pop("kind"), "spec.names.kind"),
        (lambda spec: spec["versions"][0]["schema"].update(openAPIV3Schema={"type": "nonsense"}), "type"),
    ],
)
def test_a_broken_definition_is_refused(api: Client, change, message: str):
    crd = a_crd("broken", "broken.example.com")
    change(crd["spec"])

    answer = api.create(CRDS, crd)

    assert answer.status in (400, 422), answer
    assert message in answer.body["message"]
