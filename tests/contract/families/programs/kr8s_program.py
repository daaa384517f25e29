"""kr8s."""

import kr8s
from kr8s.objects import APIObject, ConfigMap, new_class
from report import Report

report = Report()
ns = report.namespace
api = kr8s.api(kubeconfig=report.kubeconfig, namespace=ns)
Thing: type[APIObject] = new_class(
    kind="Thing", version="example.com/v1", namespaced=True, plural="things", asyncio=False
)


def config(name, **data):
    metadata = {"name": name, "namespace": ns, "labels": {"app": "family"}}
    return ConfigMap({"metadata": metadata, "data": data}, api=api)


@report.feature("create and read")
def _():
    for number in range(3):
        config(f"c{number}", k="v").create()
    assert ConfigMap.get("c0", namespace=ns, api=api).data == {"k": "v"}


@report.feature("list by label")
def _():
    assert len(list(api.get("configmaps", namespace=ns, label_selector="app=family"))) == 3


@report.feature("merge patch")
def _():
    found = ConfigMap.get("c0", namespace=ns, api=api)
    found.patch({"data": {"merge": "yes"}})
    assert found.data == {"k": "v", "merge": "yes"}


@report.feature("JSON patch")
def _():
    found = ConfigMap.get("c0", namespace=ns, api=api)
    found.patch([{"op": "replace", "path": "/data/json", "value": "yes"}], type="json")
    assert found.data["json"] == "yes"


@report.feature("watch")
def _():
    config("watched").create()
    events = api.watch("configmaps", namespace=ns, field_selector="metadata.name=watched")
    kind, seen = next(iter(events))
    assert (kind, seen.name) == ("ADDED", "watched")


@report.feature("what is missing")
def _():
    try:
        ConfigMap.get("missing", namespace=ns, api=api, timeout=1)
    except kr8s.NotFoundError:
        return
    raise AssertionError("something was found")


@report.feature("custom objects")
def _():
    thing = Thing({"metadata": {"name": "t", "namespace": ns}, "spec": {"size": 1}}, api=api)
    thing.create()
    thing.patch({"spec": {"size": 2}})
    assert thing.spec["size"] == 2


@report.feature("discovery")
def _():
    assert any(each["kind"] == "Thing" for each in api.api_resources())


report.print()
