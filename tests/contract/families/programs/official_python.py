"""The official Python client."""

from report import Report

import kubernetes

report = Report()
api = kubernetes.config.new_client_from_config(report.kubeconfig)
core, ns = kubernetes.client.CoreV1Api(api), report.namespace
custom = kubernetes.client.CustomObjectsApi(api)
QUEUES = {"group": "example.com", "version": "v1", "namespace": ns, "plural": "things"}


def config(name, **data):
    return kubernetes.client.V1ConfigMap(
        metadata=kubernetes.client.V1ObjectMeta(name=name, labels={"app": "family"}), data=data
    )


@report.feature("create and read")
def _():
    for number in range(3):
        core.create_namespaced_config_map(ns, config(f"c{number}", k="v"))
    assert core.read_namespaced_config_map("c0", ns).data == {"k": "v"}


@report.feature("list by label")
def _():
    assert len(core.list_namespaced_config_map(ns, label_selector="app=family").items) == 3


@report.feature("pages")
def _():
    names, token = [], None
    while token is None or token:
        page = core.list_namespaced_config_map(ns, limit=2, _continue=token)
        names += [item.metadata.name for item in page.items]
        token = page.metadata._continue or ""
    assert {"c0", "c1", "c2"} <= set(names)


@report.feature("merge patch")
def _():
    body = {"data": {"merge": "yes"}}
    made = core.patch_namespaced_config_map("c0", ns, body, _content_type="application/merge-patch+json")
    assert made.data == {"k": "v", "merge": "yes"}


@report.feature("JSON patch")
def _():
    body = [{"op": "replace", "path": "/data/json", "value": "yes"}]
    made = core.patch_namespaced_config_map("c0", ns, body, _content_type="application/json-patch+json")
    assert made.data["json"] == "yes"


@report.feature("strategic merge patch")
def _():
    body = {"data": {"strategic": "yes"}}
    made = core.patch_namespaced_config_map("c0", ns, body, _content_type="application/strategic-merge-patch+json")
    assert made.data["strategic"] == "yes"


@report.feature("server-side apply")
def _():
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "b"}}
    made = core.patch_namespaced_config_map(
        "applied", ns, body, field_manager="family", force=True, _content_type="application/apply-patch+yaml"
    )
    assert made.metadata.managed_fields[0].operation == "Apply"


@report.feature("watch")
def _():
    since = core.list_namespaced_config_map(ns).metadata.resource_version
    core.create_namespaced_config_map(ns, config("watched"))
    events = kubernetes.watch.Watch().stream(
        core.list_namespaced_config_map, ns, resource_version=since, timeout_seconds=10
    )
    event = next(iter(events))
    assert (event["type"], event["object"].metadata.name) == ("ADDED", "watched")


@report.feature("conflicts")
def _():
    stale = core.read_namespaced_config_map("c1", ns)
    core.patch_namespaced_config_map("c1", ns, {"data": {"x": "y"}})
    try:
        core.replace_namespaced_config_map("c1", ns, stale)
    except kubernetes.client.ApiException as error:
        assert error.status == 409
    else:
        raise AssertionError("a stale replacement was accepted")


@report.feature("what is missing")
def _():
    try:
        core.read_namespaced_config_map("missing", ns)
    except kubernetes.client.ApiException as error:
        assert error.status == 404
    else:
        raise AssertionError("something was found")


@report.feature("custom objects")
def _():
    body = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}}
    custom.create_namespaced_custom_object(**QUEUES, body=body)
    made = custom.patch_namespaced_custom_object(**QUEUES, name="t", body={"spec": {"size": 2}})
    assert made["spec"]["size"] == 2


@report.feature("discovery")
def _():
    client = kubernetes.dynamic.DynamicClient(api)
    assert client.resources.get(api_version="example.com/v1", kind="Thing").name == "things"


@report.feature("tokens")
def _():
    core.create_namespaced_service_account(ns, kubernetes.client.V1ServiceAccount(metadata={"name": "family"}))
    request = kubernetes.client.AuthenticationV1TokenRequest(
        spec=kubernetes.client.V1TokenRequestSpec(audiences=[], expiration_seconds=600)
    )
    assert core.create_namespaced_service_account_token("family", ns, request).status.token


@report.feature("leases")
def _():
    leases = kubernetes.client.CoordinationV1Api(api)
    spec = kubernetes.client.V1LeaseSpec(holder_identity="me", lease_duration_seconds=5)
    leases.create_namespaced_lease(ns, kubernetes.client.V1Lease(metadata={"name": "family"}, spec=spec))
    assert leases.read_namespaced_lease("family", ns).spec.holder_identity == "me"


@report.feature("delete a collection")
def _():
    core.delete_collection_namespaced_config_map(ns, label_selector="app=family")
    assert core.list_namespaced_config_map(ns, label_selector="app=family").items == []


report.print()
