"""What is particular to built-in kinds when they are written: status on create, what an update may not change.

One table; a kind without a row is treated like any other. Validation of contents is in core_validation.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Final

from volcano.api.meta import JSON
from volcano.api.pods.quality import quality_of_service
from volcano.api.pods.requests import read_resources
from volcano.api.scheme import ResourceType

CLEANUP: Final = "customresourcecleanup.apiextensions.k8s.io"
Prepare = Callable[[JSON], None]

KEEPS_STATUS_ON_CREATE: Final = frozenset({"nodes"})
"""A kubelet registers its node together with its status."""


def _pod(obj: JSON) -> None:
    obj["status"] = {"phase": "Pending", "qosClass": quality_of_service(read_resources(obj.get("spec")))}


def _namespace(obj: JSON) -> None:
    spec = obj.setdefault("spec", {})
    if isinstance(spec, dict) and "kubernetes" not in (spec.get("finalizers") or []):
        spec["finalizers"] = [*(spec.get("finalizers") or []), "kubernetes"]
    obj["status"] = {"phase": "Active"}
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = obj["metadata"]["name"]


def _service(obj: JSON) -> None:
    obj["status"] = {"loadBalancer": {}}


def _claim(obj: JSON) -> None:
    obj["status"] = {"phase": "Pending"}


def _volume(obj: JSON) -> None:
    obj["status"] = {"phase": "Pending"}


def _empty_status(obj: JSON) -> None:
    obj["status"] = {}


WITHOUT_STATUS: Final = (
    "deployments.apps", "replicasets.apps", "statefulsets.apps", "daemonsets.apps", "cronjobs.batch",
    "replicationcontrollers", "resourcequotas",
)  # fmt: skip
"""Their controllers fill the status; it starts empty."""


def _secret(obj: JSON) -> None:
    """stringData is for writing only: it ends up in data."""
    texts = obj.pop("stringData", None)
    if isinstance(texts, dict) and texts:
        encoded = {key: base64.b64encode(str(text).encode()).decode() for key, text in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}


def _job(obj: JSON) -> None:
    """A batch/v1 Job selects its pods by its own uid unless it says otherwise."""
    obj["status"] = {}
    spec = obj.get("spec")
    if not isinstance(spec, dict) or spec.get("manualSelector") or not isinstance(spec.get("template"), dict):
        return
    uid, name = obj["metadata"]["uid"], obj["metadata"].get("name", "")
    labels = {
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name, "controller-uid": uid,
        "job-name": name,
    }  # fmt: skip
    metadata = spec["template"].get("metadata") or {}
    if isinstance(metadata, dict):
        spec["template"]["metadata"] = {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}
    spec.setdefault("selector", {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}})


def _crd(obj: JSON) -> None:
    """Its objects go before it does."""
    finalizers = obj["metadata"].get("finalizers") or []
    if isinstance(finalizers, list) and CLEANUP not in finalizers:
        obj["metadata"]["finalizers"] = [*finalizers, CLEANUP]


def prepare(row: ResourceType, obj: JSON) -> None:
    """A new object of a built-in kind."""
    prepare_one = PREPARE_CREATE.get(row.qualified)
    if prepare_one is not None:
        prepare_one(obj)


def carry_over(row: ResourceType, obj: JSON, old: JSON) -> None:
    """What an update may leave out of a built-in kind and keeps."""
    if row.qualified == "secrets":
        _secret(obj)
    if row.qualified == "secrets" and not obj.get("type"):
        obj["type"] = old.get("type")
    if row.qualified == "pods" and isinstance(obj.get("spec"), dict):
        for field in ("nodeName", "priority", "serviceAccount", "preemptionPolicy"):
            before = (old.get("spec") or {}).get(field)
            if before is not None:
                obj["spec"].setdefault(field, before)


PREPARE_CREATE: Final[Mapping[str, Prepare]] = {
    "secrets": _secret,
    "jobs.batch": _job,
    "customresourcedefinitions.apiextensions.k8s.io": _crd,
    "pods": _pod,
    "namespaces": _namespace,
    "services": _service,
    "persistentvolumeclaims": _claim,
    "persistentvolumes": _volume,
    **dict.fromkeys(WITHOUT_STATUS, _empty_status),
}  # fmt: skip
