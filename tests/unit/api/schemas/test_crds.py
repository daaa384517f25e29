"""The generated CustomResourceDefinitions: what the specification demands of them, and templates that lose nothing."""

from __future__ import annotations

import copy

import pytest

from volcano.api.schemas.crds import crd_manifests
from volcano.api.schemas.openapi_table import core_schema, core_table
from volcano.embedded.apiserver.schemas.crd.structural import compile_schema

MANIFESTS = {crd["metadata"]["name"]: crd for crd in crd_manifests()}


def _version(name):
    (version,) = MANIFESTS[name]["spec"]["versions"]
    return version


def _schema(name, *path):
    found = _version(name)["schema"]["openAPIV3Schema"]
    for step in path:
        found = (
            found["items"]
            if step == "[]"
            else found["additionalProperties"]
            if step == "{}"
            else found["properties"][step]
        )
    return found


def _filled(schema, field="", depth=0):
    """A value with every field a schema has; only metadata is reduced to what templates keep."""
    if "$ref" in schema:
        name = schema["$ref"]
        if name.endswith("resource.Quantity"):
            return "100m"
        if name.endswith("IntOrString"):
            return 8080
        if name.endswith("meta.v1.ObjectMeta"):
            return {"annotations": {"a": "b"}, "finalizers": ["f"], "labels": {"l": "m"}, "name": "n", "namespace": "s"}
        return _filled(core_schema(name), field, depth + 1)
    if "items" in schema:
        return [_filled(schema["items"], field, depth + 1)]
    if isinstance(schema.get("additionalProperties"), dict):
        return {"key": _filled(schema["additionalProperties"], field, depth + 1)}
    if "properties" in schema:
        return {name: _filled(child, name, depth + 1) for name, child in schema["properties"].items()}
    if schema.get("format") == "date-time":
        return "2024-01-01T00:00:00Z"
    kinds = {"string": f"text-{field}", "integer": 7, "boolean": True, "number": 1.5, "object": {"any": {"thing": [1]}}}
    return kinds[schema.get("type", "object")]


def _count(value):
    if isinstance(value, dict):
        return sum(map(_count, value.values())) + len(value)
    return sum(map(_count, value)) if isinstance(value, list) else 1


def test_a_pod_template_with_every_field_loses_none_in_a_job():
    template = _filled(core_schema("io.k8s.api.core.v1.PodTemplateSpec"))
    claim = _filled(core_schema("io.k8s.api.core.v1.PersistentVolumeClaimSpec"))
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "all"},
        "spec": {
            "tasks": [{"name": "t", "replicas": 1, "template": template}],
            "volumes": [{"mountPath": "/x", "volumeClaim": claim}],
        },
    }
    given = copy.deepcopy(job)
    schema = compile_schema(_version("jobs.batch.volcano.sh")["schema"]["openAPIV3Schema"])

    removed = schema.prune(job)
    errors = schema.validate(job)

    assert removed == []
    assert errors == []
    assert job == given
    assert _count(template) > 900


def test_metadata_in_a_template_keeps_only_what_templates_have():
    schema = compile_schema(_version("jobs.batch.volcano.sh")["schema"]["openAPIV3Schema"])
    metadata = {"labels": {"a": "b"}, "creationTimestamp": None, "uid": "x", "generateName": "y"}
    job = {"spec": {"tasks": [{"template": {"metadata": metadata, "spec": {"containers": []}}}]}}

    schema.prune(job)

    assert job["spec"]["tasks"][0]["template"]["metadata"] == {"labels": {"a": "b"}}


def test_names_scopes_and_subresources_are_those_of_the_specification():
    found = {
        name: (
            crd["spec"]["names"]["kind"],
            crd["spec"]["names"]["singular"],
            tuple(crd["spec"]["names"].get("shortNames", ())),
            crd["spec"]["scope"],
            crd["spec"]["versions"][0]["name"],
            crd["spec"]["versions"][0].get("subresources"),
        )
        for name, crd in MANIFESTS.items()
    }
    status = {"status": {}}

    assert found == {
        "jobs.batch.volcano.sh": ("Job", "job", ("vcjob", "vj"), "Namespaced", "v1alpha1", status),
        "cronjobs.batch.volcano.sh": ("CronJob", "cronjob", ("cronvcjob", "cronvj"), "Namespaced", "v1alpha1", status),
        "commands.bus.volcano.sh": ("Command", "command", (), "Namespaced", "v1alpha1", None),
        "podgroups.scheduling.volcano.sh": (
            "PodGroup", "podgroup", ("pg", "podgroup-v1beta1"), "Namespaced", "v1beta1", {},
        ),
        "queues.scheduling.volcano.sh": ("Queue", "queue", ("q", "queue-v1beta1"), "Cluster", "v1beta1", status),
        "jobtemplates.flow.volcano.sh": ("JobTemplate", "jobtemplate", ("jt",), "Namespaced", "v1alpha1", status),
        "jobflows.flow.volcano.sh": ("JobFlow", "jobflow", ("jf",), "Namespaced", "v1alpha1", status),
        "hypernodes.topology.volcano.sh": ("HyperNode", "hypernode", ("hn",), "Cluster", "v1alpha1", status),
        "numatopologies.nodeinfo.volcano.sh": (
            "Numatopology", "numatopology", ("numatopo",), "Cluster", "v1alpha1", None,
        ),
        "nodeshards.shard.volcano.sh": ("NodeShard", "nodeshard", ("nsh",), "Cluster", "v1alpha1", status),
        "colocationconfigurations.config.volcano.sh": (
            "ColocationConfiguration", "colocationconfiguration", (), "Namespaced", "v1alpha1", status,
        ),
        "reservations.reservation.volcano.sh": ("Reservation", "reservation", ("rsv",), "Cluster", "v1alpha1", status),
    }  # fmt: skip


@pytest.mark.parametrize("crd", MANIFESTS.values(), ids=MANIFESTS)
def test_definitions_survive_the_removal_of_a_chart(crd):
    assert crd["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


@pytest.mark.parametrize(
    ("name", "columns"),
    [
        ("jobs.batch.volcano.sh", "STATUS minAvailable RUNNINGS AGE QUEUE"),
        ("podgroups.scheduling.volcano.sh", "STATUS minMember RUNNINGS AGE QUEUE"),
        ("queues.scheduling.volcano.sh", "PARENT"),
        ("jobflows.flow.volcano.sh", "Status Age"),
        ("hypernodes.topology.volcano.sh", "Tier TierName NodeCount Age"),
        ("nodeshards.shard.volcano.sh", "AGE"),
        ("commands.bus.volcano.sh", ""),
    ],
)
def test_columns_are_those_of_the_specification(name, columns):
    found = [column["name"] for column in _version(name).get("additionalPrinterColumns", [])]

    assert " ".join(found) == columns


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("jobs.batch.volcano.sh", ("spec", "minAvailable"), {"type": "integer", "format": "int32", "minimum": 0}),
        ("jobs.batch.volcano.sh", ("spec", "maxRetry"), {"type": "integer", "format": "int32", "minimum": 0, "default": 3}),
        ("jobs.batch.volcano.sh", ("spec", "minSuccess"), {"type": "integer", "format": "int32", "minimum": 1}),
        ("jobs.batch.volcano.sh", ("spec", "runningEstimate"), {"type": "string"}),
        ("queues.scheduling.volcano.sh", ("spec", "weight"),
         {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535, "default": 1}),
        ("podgroups.scheduling.volcano.sh", ("status", "conditions", "[]", "transitionID"), {"type": "string"}),
        ("podgroups.scheduling.volcano.sh", ("spec", "subGroupPolicy", "[]", "subGroupSize"),
         {"type": "integer", "format": "int32", "minimum": 1, "default": 1}),
        ("cronjobs.batch.volcano.sh", ("spec", "startingDeadlineSeconds"),
         {"type": "integer", "format": "int64", "minimum": 0}),
        ("cronjobs.batch.volcano.sh", ("spec", "concurrencyPolicy"),
         {"type": "string", "enum": ["Allow", "Forbid", "Replace"], "default": "Allow"}),
        ("jobflows.flow.volcano.sh", ("spec", "flows", "[]", "dependsOn", "probe", "tcpSocketList", "[]", "port"),
         {"type": "integer", "minimum": 0, "maximum": 65535}),
        ("hypernodes.topology.volcano.sh", ("spec", "tier"), {"type": "integer", "minimum": 0}),
        ("colocationconfigurations.config.volcano.sh", ("spec", "memoryQos", "highRatio"),
         {"type": "integer", "minimum": 0, "maximum": 100, "default": 100}),
        ("numatopologies.nodeinfo.volcano.sh", ("spec", "cpuDetail", "{}", "numa"), {"type": "integer", "minimum": 0}),
    ],
)  # fmt: skip
def test_limits_and_defaults_are_those_of_the_specification(name, path, expected):
    found = {key: value for key, value in _schema(name, *path).items() if key != "description"}

    assert found == expected


@pytest.mark.parametrize(
    ("name", "path", "required"),
    [
        ("cronjobs.batch.volcano.sh", ("spec",), ["jobTemplate", "schedule"]),
        ("jobs.batch.volcano.sh", ("spec", "volumes", "[]"), ["mountPath"]),
        ("jobs.batch.volcano.sh", ("spec", "tasks", "[]", "partitionPolicy"), ["partitionSize", "totalPartitions"]),
        ("jobs.batch.volcano.sh", ("spec", "tasks", "[]", "template", "spec"), ["containers"]),
        ("commands.bus.volcano.sh", ("target",), ["apiVersion", "kind", "name", "uid"]),
        ("hypernodes.topology.volcano.sh", ("spec",), ["tier"]),
        ("nodeshards.shard.volcano.sh", (), ["spec"]),
        ("nodeshards.shard.volcano.sh", ("spec",), ["nodesDesired"]),
        ("jobflows.flow.volcano.sh", ("spec", "flows", "[]"), ["name"]),
    ],
)
def test_required_fields_are_those_of_the_specification(name, path, required):
    assert _schema(name, *path)["required"] == required


def test_manifests_share_nothing_with_each_other():
    first, second = crd_manifests(), crd_manifests()

    first[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"].clear()

    assert second == list(MANIFESTS.values())


def test_the_core_table_has_every_built_in_kind_and_no_dangling_reference():
    table = core_table()

    def references(value):
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str):
                yield value["$ref"]
            for item in value.values():
                yield from references(item)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    from volcano.api.scheme import BUILT_IN

    assert all((row.group, row.version, row.kind) in table.kinds for row in BUILT_IN)
    assert set(references(table.schemas)) <= set(table.schemas)
    assert "description" not in str(table.schemas["io.k8s.api.core.v1.Pod"])
