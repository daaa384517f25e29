"""The rows of the other kinds in `kubectl get`: storage, scheduling, networking, access, devices."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeAlias

from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.reading import at, mapping, number, objects, text, texts
from volcano.embedded.apiserver.schemas.tables.cell_texts import (
    NONE,
    UNSET,
    age_of,
    first_few,
    ingress_addresses,
    name_of,
    or_none,
    quantity_text,
    selector_text,
)

Cells: TypeAlias = Callable[[JSON, datetime], list[Any]]


def _marked_default(obj: JSON, *annotations: str) -> str:
    found = mapping(obj, "metadata", "annotations")
    return f"{name_of(obj)} (default)" if any(found.get(key) == "true" for key in annotations) else name_of(obj)


def storage_class_row(obj: JSON, now: datetime) -> list[Any]:
    prefix = "kubernetes.io/is-default-class"
    return [
        _marked_default(obj, f"storageclass.{prefix}", f"storageclass.beta.{prefix}"),
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy") or "Delete",
        text(obj, "volumeBindingMode") or "Immediate",
        obj.get("allowVolumeExpansion") is True,
        age_of(obj, now),
    ]


def csi_driver(obj: JSON, now: datetime) -> list[Any]:
    spec = mapping(obj, "spec")
    tokens = spec.get("tokenRequests")
    return [
        name_of(obj),
        spec.get("attachRequired") is not False,
        spec.get("podInfoOnMount") is True,
        spec.get("storageCapacity") is True,
        UNSET if tokens is None else ",".join(text(token, "audience") for token in objects(spec, "tokenRequests")),
        spec.get("requiresRepublish") is True,
        or_none(",".join(texts(spec, "volumeLifecycleModes"))),
        age_of(obj, now),
    ]


def attachment(obj: JSON, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        text(obj, "spec", "attacher"),
        text(obj, "spec", "source", "persistentVolumeName"),
        text(obj, "spec", "nodeName"),
        at(obj, "status", "attached") is True,
        age_of(obj, now),
    ]


def priority_class(obj: JSON, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        number(obj, "value"),
        obj.get("globalDefault") is True,
        age_of(obj, now),
        text(obj, "preemptionPolicy"),
    ]


def endpoint_slice(obj: JSON, now: datetime) -> list[Any]:
    ports = [str(p["port"]) if p.get("port") is not None else text(p, "name") or "*" for p in objects(obj, "ports")]
    addresses = [address for endpoint in objects(obj, "endpoints") for address in texts(endpoint, "addresses")]
    return [
        name_of(obj),
        text(obj, "addressType"),
        first_few(ports) if ports else UNSET,
        first_few(addresses) if addresses else UNSET,
        age_of(obj, now),
    ]


def ingress(obj: JSON, now: datetime) -> list[Any]:
    rules = objects(obj, "spec", "rules")
    hosts = [text(rule, "host") for rule in rules if text(rule, "host")]
    annotated = text(obj, "metadata", "annotations", "kubernetes.io/ingress.class")
    return [
        name_of(obj),
        text(obj, "spec", "ingressClassName") or annotated or NONE,
        first_few(hosts, len(rules)) if hosts else "*",
        ingress_addresses(obj),
        "80, 443" if objects(obj, "spec", "tls") else "80",
        age_of(obj, now),
    ]


def ingress_class(obj: JSON, now: datetime) -> list[Any]:
    parameters = mapping(obj, "spec", "parameters")
    group = text(parameters, "apiGroup")
    kind = f"{text(parameters, 'kind')}.{group}" if group else text(parameters, "kind")
    name = _marked_default(obj, "ingressclass.kubernetes.io/is-default-class")
    shown = f"{kind}/{text(parameters, 'name')}" if parameters else NONE
    return [name, text(obj, "spec", "controller"), shown, age_of(obj, now)]


def api_service(obj: JSON, now: datetime) -> list[Any]:
    service = mapping(obj, "spec", "service")
    where = f"{text(service, 'namespace')}/{text(service, 'name')}" if service else "Local"
    available = next((c for c in objects(obj, "status", "conditions") if c.get("type") == "Available"), {})
    state = text(available, "status") or "Unknown"
    shown = state if state in ("True", "Unknown") else f"{state} ({text(available, 'reason')})"
    return [name_of(obj), where, shown, age_of(obj, now)]


def binding(obj: JSON, now: datetime) -> list[Any]:
    subjects = objects(obj, "subjects")
    by_kind = {
        kind: ", ".join(text(s, "name") for s in subjects if s.get("kind") == kind) for kind in ("User", "Group")
    }
    accounts = [f"{text(s, 'namespace')}/{text(s, 'name')}" for s in subjects if s.get("kind") == "ServiceAccount"]
    role = mapping(obj, "roleRef")
    return [
        name_of(obj),
        f"{text(role, 'kind')}/{text(role, 'name')}",
        age_of(obj, now),
        by_kind["User"],
        by_kind["Group"],
        ", ".join(accounts),
    ]


def resource_claim(obj: JSON, now: datetime) -> list[Any]:
    deleted = at(obj, "metadata", "deletionTimestamp") is not None
    allocated = isinstance(at(obj, "status", "allocation"), dict)
    states = ["deleted"] if deleted else []
    if allocated:
        states += ["allocated", *(["reserved"] if objects(obj, "status", "reservedFor") else [])]
    elif not deleted:
        states.append("pending")
    return [name_of(obj), ",".join(states), age_of(obj, now)]


def capacity(obj: JSON, now: datetime) -> list[Any]:
    amount = obj.get("capacity")
    return [name_of(obj), text(obj, "storageClassName"), quantity_text(amount) if amount is not None else UNSET]


def resource_slice(obj: JSON, now: datetime) -> list[Any]:
    spec = mapping(obj, "spec")
    return [name_of(obj), text(spec, "nodeName"), text(spec, "driver"), text(spec, "pool", "name"), age_of(obj, now)]


def counted(*path: str) -> Cells:
    return lambda obj, now: [name_of(obj), len(objects(obj, *path)), age_of(obj, now)]


def with_text(*path: str) -> Cells:
    return lambda obj, now: [name_of(obj), text(obj, *path), age_of(obj, now)]


def network_policy(obj: JSON, now: datetime) -> list[Any]:
    return [name_of(obj), selector_text(at(obj, "spec", "podSelector")), age_of(obj, now)]
