"""Words and codes of refusals, which people and programs look for: the same from any API server."""

from __future__ import annotations

import copy

import pytest

from tests.contract.bodies import a_config, a_pod
from tests.running_server import Client

TEMPLATE = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "a", "image": "b"}]}}
SERVICE = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}


def changed(body: dict, path: str, value: object) -> dict:
    body = copy.deepcopy(body)
    *parents, last = path.split(".")
    place = body
    for part in parents:
        place = place[int(part)] if part.isdigit() else place.setdefault(part, {})
    place[int(last) if last.isdigit() else last] = value
    return body


@pytest.mark.parametrize(
    ("resource", "body", "status", "message"),
    [
        ("services", {"metadata": {"name": "S"}, "spec": {"ports": [{"port": 80}]}}, 422, 'metadata.name: Invalid value: "S": a lowercase RFC 1123 label must consist of'),
        ("services", {"metadata": {"name": "s"}, "spec": {}}, 422, "spec.ports: Required value"),
        ("services", changed(SERVICE, "spec.ports.0.port", 0), 422, "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"),
        ("services", changed(SERVICE, "spec.type", "Odd"), 422, 'spec.type: Unsupported value: "Odd": supported values: "ClusterIP", "ExternalName", "LoadBalancer", "NodePort"'),
        ("services", changed(SERVICE, "spec.ports", [{"port": 1}, {"port": 2}]), 422, "spec.ports[0].name: Required value"),
        ("configmaps", {"metadata": {"name": "c"}, "data": {"bad key": "x"}}, 422, "data[bad key]: Invalid value:"),
        ("configmaps", {"metadata": {}}, 422, "metadata.name: Required value: name or generateName is required"),
        ("configmaps", changed(a_config("c"), "metadata.annotations", {"UP/": "x"}), 422, "metadata.annotations: Invalid value:"),
        ("configmaps", changed(a_config("c"), "metadata.finalizers", ["plain"]), 422, "name is neither a standard finalizer name nor is it fully qualified"),
        ("configmaps", changed(a_config("c"), "metadata.ownerReferences", [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]), 422, 'metadata.ownerReferences.uid: Invalid value: "": must not be empty'),
        ("secrets", {"metadata": {"name": "s"}, "data": {"a": "not base64!"}}, 400, "illegal base64 data"),
        ("pods", changed(a_pod(), "spec.containers.0.resources", {"limits": {"cpu": "-1"}}), 422, "spec.containers[0].resources.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0"),
        ("pods", changed(a_pod(), "spec.restartPolicy", 5), 400, "cannot unmarshal number into Go struct field PodSpec.spec.restartPolicy of type "),
        ("pods", changed(a_pod(), "spec.priority", 7), 403, "the integer value of priority (7) must not be provided in pod spec"),
        ("pods", changed(a_pod(), "spec.serviceAccountName", "ghost"), 403, 'serviceaccount "ghost" not found'),
        ("resourcequotas", {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "-1"}}}, 422, 'spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0'),
    ],
)  # fmt: skip
def test_core_refusals(api: Client, namespace: str, resource: str, body: dict, status: int, message: str):
    answer = api.create(f"/api/v1/namespaces/{namespace}/{resource}", body)

    assert (answer.status, message in answer.body["message"]) == (status, True), answer


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("/apis/apps/v1/namespaces/{}/deployments", {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"x": "y"}}, "template": TEMPLATE}}, 422, "spec.template.metadata.labels: Invalid value: {\"a\":\"b\"}: `selector` does not match template `labels`"),
        ("/apis/apps/v1/namespaces/{}/deployments", {"metadata": {"name": "d"}, "spec": {"template": TEMPLATE}}, 422, "spec.selector: Required value"),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "system-mine"}, "value": 1}, 422, "priority class names with 'system-' prefix are reserved for system use only"),
        ("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "huge"}, "value": 2_000_000_000}, 422, "maximum allowed value of a user defined priority is 1000000000"),
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/roles", {"metadata": {"name": "r"}, "rules": [{"resources": ["pods"], "apiGroups": [""]}]}, 422, "rules[0].verbs: Required value: verbs must contain at least one value"),
        ("/apis/rbac.authorization.k8s.io/v1/namespaces/{}/rolebindings", {"metadata": {"name": "r"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Thing", "name": "x"}}, 422, 'roleRef.kind: Unsupported value: "Thing": supported values: "Role", "ClusterRole"'),
        ("/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"taints": [{"key": "a", "effect": "Never"}]}}, 422, 'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'),
        ("/api/v1/namespaces", {"metadata": {"name": "has.dot"}}, 422, 'metadata.name: Invalid value: "has.dot": must not contain dots'),
    ],
)  # fmt: skip
def test_refusals_of_other_groups(api: Client, namespace: str, path: str, body: dict, status: int, message: str):
    answer = api.create(path.format(namespace), body)

    assert (answer.status, message in answer.body["message"]) == (status, True), answer


def test_immutable_things_stay(api: Client, namespace: str):
    root = f"/api/v1/namespaces/{namespace}"
    api.create(f"{root}/configmaps", a_config("c", a="1") | {"immutable": True})
    api.create(f"{root}/secrets", {"metadata": {"name": "s"}, "type": "Opaque"})
    api.create(f"{root}/services", SERVICE)

    config = api.merge(f"{root}/configmaps/c", {"data": {"a": "2"}})
    secret = api.merge(f"{root}/secrets/s", {"type": "example.com/other"})
    service = api.merge(f"{root}/services/s", {"spec": {"clusterIP": "10.0.0.99", "clusterIPs": ["10.0.0.99"]}})

    assert "data: Forbidden: field is immutable when `immutable` is set" in config.body["message"]
    assert 'type: Invalid value: "example.com/other": field is immutable' in secret.body["message"]
    assert "may not change once set" in service.body["message"] or "field is immutable" in service.body["message"]


def test_a_service_gets_an_address_and_keeps_it(api: Client, namespace: str):
    services = f"/api/v1/namespaces/{namespace}/services"
    made = api.create(services, SERVICE).body["spec"]
    headless = api.create(services, changed(changed(SERVICE, "metadata.name", "h"), "spec.clusterIP", "None")).body[
        "spec"
    ]
    port = api.create(services, changed(changed(SERVICE, "metadata.name", "n"), "spec.type", "NodePort")).body["spec"]

    changed_spec = api.merge(f"{services}/s", {"metadata": {"labels": {"a": "b"}}}).body["spec"]

    assert made["clusterIP"] == changed_spec["clusterIP"] == made["clusterIPs"][0]
    assert headless["clusterIPs"] == ["None"]
    assert 30000 <= port["ports"][0]["nodePort"] <= 32767


def test_limit_ranges_fill_in_and_bound(api: Client, namespace: str):
    ranges = {"type": "Container", "default": {"cpu": "200m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}}
    api.create(f"/api/v1/namespaces/{namespace}/limitranges", {"metadata": {"name": "l"}, "spec": {"limits": [ranges]}})
    pods = f"/api/v1/namespaces/{namespace}/pods"

    made = api.create(pods, a_pod()).body
    over = api.create(pods, changed(a_pod("q"), "spec.containers.0.resources", {"limits": {"cpu": "2"}}))

    assert made["spec"]["containers"][0]["resources"] == {"limits": {"cpu": "200m"}, "requests": {"cpu": "100m"}}
    assert over.status == 403
    assert "maximum cpu usage per Container is 1, but limit is 2" in over.body["message"]


def test_a_namespace_is_ready_for_use(api: Client, namespace: str):
    made = api.get(f"/api/v1/namespaces/{namespace}").body

    assert made["metadata"]["labels"] == {"kubernetes.io/metadata.name": namespace}
    assert made["spec"]["finalizers"] == ["kubernetes"]
    assert made["status"]["phase"] == "Active"


def test_a_pod_gets_its_defaults(api: Client, pods: str):
    spec = api.create(pods, a_pod()).body["spec"]

    assert (spec["restartPolicy"], spec["dnsPolicy"], spec["terminationGracePeriodSeconds"]) == (
        "Always",
        "ClusterFirst",
        30,
    )
    assert (spec["serviceAccountName"], spec["priority"], spec["preemptionPolicy"]) == (
        "default",
        0,
        "PreemptLowerPriority",
    )
    assert spec["containers"][0]["imagePullPolicy"] == "Always"
    assert {t["key"] for t in spec["tolerations"]} == {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}
