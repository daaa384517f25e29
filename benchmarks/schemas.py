"""What the schemas cost per object: microseconds of CPU time, best of seven rounds (`python benchmarks/schemas.py`)."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime
from time import process_time
from timeit import repeat
from typing import Any

from volcano.api.schemas.crds import crd_manifests
from volcano.api.scheme import find_resource_type
from volcano.embedded.apiserver.schemas.apply.merge import apply_patch, track_update
from volcano.embedded.apiserver.schemas.apply.strategic import strategic_merge
from volcano.embedded.apiserver.schemas.builtin.core_defaults import apply_core_defaults
from volcano.embedded.apiserver.schemas.builtin.strict_fields import check_types, duplicate_fields, prune_core
from volcano.embedded.apiserver.schemas.crd.structural import compile_schema
from volcano.embedded.apiserver.schemas.tables.tables import table_for

NOW = datetime(2026, 1, 1, tzinfo=UTC)
POD = "io.k8s.api.core.v1.Pod"
CONTAINER = {
    "name": "c",
    "image": "busybox",
    "command": ["sh", "-c", "echo hi"],
    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    "env": [{"name": "A", "value": "b"}],
    "ports": [{"containerPort": 80}],
    "volumeMounts": [{"name": "v", "mountPath": "/x"}],
}
SPEC = {"containers": [CONTAINER], "restartPolicy": "OnFailure", "volumes": [{"name": "v", "emptyDir": {}}]}


def task(name: str) -> dict[str, Any]:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": copy.deepcopy(SPEC)}
    policies = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    return {"name": name, "replicas": 2, "template": template, "policies": policies}


def main() -> None:
    job = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"minAvailable": 3, "queue": "default", "plugins": {"svc": []}, "tasks": [task("a"), task("b")]},
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": copy.deepcopy(SPEC)}
    row = find_resource_type("", "Pod")
    assert row is not None
    manifests = {crd["metadata"]["name"]: crd for crd in crd_manifests()}
    schema = compile_schema(manifests["jobs.batch.volcano.sh"]["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    apply_core_defaults(row, pod)
    raw = json.dumps(pod).encode()
    stored = track_update(None, pod, manager="m", schema=POD, now=NOW)
    running = {**stored, "status": {"phase": "Running"}}
    patch = {"spec": {"containers": [{"name": "c", "image": "other"}]}}
    measures: dict[str, Callable[[], Any]] = {
        "two-task Job: prune": lambda: schema.prune(job),
        "two-task Job: default": lambda: schema.default(job),
        "two-task Job: validate": lambda: schema.validate(job),
        "pod: types": lambda: check_types(row, pod),
        "pod: unknown fields": lambda: prune_core(row, pod),
        "pod: doubled fields": lambda: duplicate_fields(raw),
        "pod: defaults (already set)": lambda: apply_core_defaults(row, pod),
        "pod: strategic merge": lambda: strategic_merge(pod, patch, POD),
        "pod: managed fields on create": lambda: track_update(None, pod, manager="m", schema=POD, now=NOW),
        "pod: managed fields on status": lambda: track_update(stored, running, manager="k", schema=POD, now=NOW),
        "pod: apply unchanged": lambda: apply_patch(stored, pod, manager="a", force=True, schema=POD, now=NOW),
        "pod: row of a table": lambda: table_for(row, [pod], now=NOW),
    }
    for name, call in measures.items():
        print(f"{name:32} {min(repeat(call, timer=process_time, number=300, repeat=7)) / 300 * 1e6:8.1f} µs")


if __name__ == "__main__":
    main()
