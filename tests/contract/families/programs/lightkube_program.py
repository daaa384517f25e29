"""lightkube."""

import lightkube
from lightkube.core.exceptions import ApiError
from lightkube.generic_resource import create_namespaced_resource
from lightkube.models.authentication_v1 import TokenRequestSpec
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import ConfigMap, ServiceAccount, ServiceAccountToken
from lightkube.types import PatchType
from report import Report

report = Report()
ns = report.namespace
client = lightkube.Client(lightkube.KubeConfig.from_file(report.kubeconfig), namespace=ns, field_manager="family")
Thing = create_namespaced_resource("example.com", "v1", "Thing", "things")


def config(name, **data):
    return ConfigMap(metadata=ObjectMeta(name=name, labels={"app": "family"}), data=data)


@report.feature("create and read")
def _():
    for number in range(3):
        client.create(config(f"c{number}", k="v"))
    assert client.get(ConfigMap, "c0").data == {"k": "v"}


@report.feature("list by label")
def _():
    assert len(list(client.list(ConfigMap, labels={"app": "family"}))) == 3


@report.feature("pages")
def _():
    assert {"c0", "c1", "c2"} <= {item.metadata.name for item in client.list(ConfigMap, chunk_size=2)}


@report.feature("merge patch")
def _():
    made = client.patch(ConfigMap, "c0", {"data": {"merge": "yes"}}, patch_type=PatchType.MERGE)
    assert made.data == {"k": "v", "merge": "yes"}


@report.feature("JSON patch")
def _():
    body = [{"op": "replace", "path": "/data/json", "value": "yes"}]
    assert client.patch(ConfigMap, "c0", body, patch_type=PatchType.JSON).data["json"] == "yes"


@report.feature("strategic merge patch")
def _():
    made = client.patch(ConfigMap, "c0", {"data": {"strategic": "yes"}}, patch_type=PatchType.STRATEGIC)
    assert made.data["strategic"] == "yes"


@report.feature("server-side apply")
def _():
    made = client.apply(ConfigMap(metadata=ObjectMeta(name="applied", namespace=ns), data={"a": "b"}), force=True)
    assert made.metadata.managedFields[0].operation == "Apply"


@report.feature("watch")
def _():
    listed = client.list(ConfigMap)
    list(listed)
    client.create(config("watched"))
    kind, seen = next(iter(client.watch(ConfigMap, resource_version=listed.resourceVersion)))
    assert (kind, seen.metadata.name) == ("ADDED", "watched")


@report.feature("conflicts")
def _():
    stale = client.get(ConfigMap, "c1")
    client.patch(ConfigMap, "c1", {"data": {"x": "y"}})
    try:
        client.replace(stale)
    except ApiError as error:
        assert error.status.code == 409
    else:
        raise AssertionError("a stale replacement was accepted")


@report.feature("what is missing")
def _():
    try:
        client.get(ConfigMap, "missing")
    except ApiError as error:
        assert error.status.code == 404
    else:
        raise AssertionError("something was found")


@report.feature("custom objects")
def _():
    client.create(Thing(metadata=ObjectMeta(name="t"), spec={"size": 1}))
    made = client.patch(Thing, "t", {"spec": {"size": 2}}, patch_type=PatchType.MERGE)
    assert made.spec["size"] == 2


@report.feature("tokens")
def _():
    client.create(ServiceAccount(metadata=ObjectMeta(name="family")))
    request = ServiceAccountToken(metadata=ObjectMeta(), spec=TokenRequestSpec(audiences=[], expirationSeconds=600))
    assert client.create(request, "family").status.token


@report.feature("leases")
def _():
    client.create(Lease(metadata=ObjectMeta(name="family"), spec=LeaseSpec(holderIdentity="me")))
    assert client.get(Lease, "family").spec.holderIdentity == "me"


@report.feature("delete a collection")
def _():
    client.deletecollection(ConfigMap)
    assert list(client.list(ConfigMap, labels={"app": "family"})) == []


report.print()
