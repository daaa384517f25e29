"""The rows of core kinds in `kubectl get`: services, nodes, volumes, events and their like."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from volcano.api.ages import age
from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.reading import at, condition, mapping, moment, number, objects, text, texts
from volcano.embedded.apiserver.schemas.tables.cell_texts import (
    NONE,
    UNSET,
    age_of,
    containers_of,
    first_few,
    ingress_addresses,
    labels_text,
    name_of,
    or_none,
    quantity_text,
    selector_text,
)

_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_MODES: Final = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip


def pod_template(obj: JSON, now: datetime) -> list[Any]:
    return [name_of(obj), *containers_of(obj, "template"), labels_text(mapping(obj, "template", "metadata", "labels"))]


def replicas(obj: JSON, now: datetime) -> list[Any]:
    is_controller = obj.get("kind") == "ReplicationController"
    selector = mapping(obj, "spec", "selector")
    return [
        name_of(obj),
        number(obj, "spec", "replicas"),
        number(obj, "status", "replicas"),
        number(obj, "status", "readyReplicas"),
        age_of(obj, now),
        *containers_of(obj, "spec", "template"),
        labels_text(selector) if is_controller else selector_text(at(obj, "spec", "selector")),
    ]


def service(obj: JSON, now: datetime) -> list[Any]:
    addresses = texts(obj, "spec", "clusterIPs") or [text(obj, "spec", "clusterIP")]
    ports = [
        f"{port.get('port', 0)}:{port['nodePort']}/{text(port, 'protocol')}"
        if number(port, "nodePort")
        else f"{port.get('port', 0)}/{text(port, 'protocol')}"
        for port in objects(obj, "spec", "ports")
    ]
    return [
        name_of(obj),
        text(obj, "spec", "type"),
        addresses[0] or NONE,
        _external_address(obj),
        or_none(",".join(ports)),
        age_of(obj, now),
        labels_text(mapping(obj, "spec", "selector")),
    ]


def _external_address(service: JSON) -> str:
    kind = text(service, "spec", "type")
    if kind == "ExternalName":
        return text(service, "spec", "externalName")
    given = texts(service, "spec", "externalIPs")
    if kind == "LoadBalancer":
        balanced = ingress_addresses(service)
        return ",".join([*([balanced] if balanced else []), *given]) or "<pending>"
    return ",".join(given) or NONE if kind in ("ClusterIP", "NodePort") else "<unknown>"


def namespace(obj: JSON, now: datetime) -> list[Any]:
    return [name_of(obj), text(obj, "status", "phase"), age_of(obj, now)]


def node(obj: JSON, now: datetime) -> list[Any]:
    ready = condition(objects(obj, "status", "conditions"), "Ready")
    states = ["Ready" if ready == "True" else "NotReady" if ready else "Unknown"]
    if at(obj, "spec", "unschedulable") is True:
        states.append("SchedulingDisabled")
    labels = mapping(obj, "metadata", "labels")
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(text(labels, "kubernetes.io/role"))
    system = mapping(obj, "status", "nodeInfo")
    architecture = text(system, "architecture")
    kernel = text(system, "kernelVersion") or "<unknown>"
    return [
        name_of(obj),
        ",".join(states),
        or_none(",".join(sorted(roles - {""}))),
        age_of(obj, now),
        text(system, "kubeletVersion"),
        _node_address(obj, "InternalIP"),
        _node_address(obj, "ExternalIP"),
        text(system, "osImage") or "<unknown>",
        f"{kernel} ({architecture})" if architecture else kernel,
        text(system, "containerRuntimeVersion") or "<unknown>",
    ]


def _node_address(node: JSON, kind: str) -> str:
    entries = objects(node, "status", "addresses")
    return next((text(entry, "address") for entry in entries if entry.get("type") == kind), NONE)


def config_map(obj: JSON, now: datetime) -> list[Any]:
    return [name_of(obj), len(mapping(obj, "data")) + len(mapping(obj, "binaryData")), age_of(obj, now)]


def secret(obj: JSON, now: datetime) -> list[Any]:
    return [name_of(obj), text(obj, "type"), len(mapping(obj, "data")), age_of(obj, now)]


def aged(obj: JSON, now: datetime) -> list[Any]:
    return [name_of(obj), age_of(obj, now)]


def endpoints(obj: JSON, now: datetime) -> list[Any]:
    found: list[str] = []
    for subset in objects(obj, "subsets"):
        addresses = [text(address, "ip") for address in objects(subset, "addresses")]
        ports = objects(subset, "ports")
        for port in ports:
            number_ = port.get("port", 0)
            found += [f"[{ip}]:{number_}" if ":" in ip else f"{ip}:{number_}" for ip in addresses]
        if not ports:
            found += addresses
    return [name_of(obj), NONE if not objects(obj, "subsets") else first_few(found), age_of(obj, now)]


def _access_modes(modes: list[str]) -> str:
    return ",".join(_MODES[mode] for mode in _MODES if mode in modes)


def _storage_class(obj: JSON) -> str:
    annotated = text(obj, "metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
    return annotated or text(obj, "spec", "storageClassName")


def volume(obj: JSON, now: datetime) -> list[Any]:
    claim = mapping(obj, "spec", "claimRef")
    deleting = at(obj, "metadata", "deletionTimestamp") is not None
    return [
        name_of(obj),
        quantity_text(at(obj, "spec", "capacity", "storage")),
        _access_modes(texts(obj, "spec", "accessModes")),
        text(obj, "spec", "persistentVolumeReclaimPolicy"),
        "Terminating" if deleting else text(obj, "status", "phase"),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        _storage_class(obj),
        text(obj, "spec", "volumeAttributesClassName") or UNSET,
        text(obj, "status", "reason"),
        age_of(obj, now),
        text(obj, "spec", "volumeMode") or UNSET,
    ]


def claim(obj: JSON, now: datetime) -> list[Any]:
    deleting = at(obj, "metadata", "deletionTimestamp") is not None
    bound = bool(text(obj, "spec", "volumeName"))
    return [
        name_of(obj),
        "Terminating" if deleting else text(obj, "status", "phase"),
        text(obj, "spec", "volumeName"),
        quantity_text(at(obj, "status", "capacity", "storage")) if bound else "",
        _access_modes(texts(obj, "status", "accessModes")) if bound else "",
        _storage_class(obj),
        text(obj, "spec", "volumeAttributesClassName") or UNSET,
        age_of(obj, now),
        text(obj, "spec", "volumeMode") or UNSET,
    ]


def event(obj: JSON, now: datetime) -> list[Any]:
    regarding = mapping(obj, "involvedObject") or mapping(obj, "regarding")
    first = moment(obj, "firstTimestamp") or moment(obj, "deprecatedFirstTimestamp") or moment(obj, "eventTime")
    last = moment(obj, "lastTimestamp") or moment(obj, "deprecatedLastTimestamp") or first
    count = number(obj, "count") or number(obj, "deprecatedCount") or 1
    if isinstance(obj.get("series"), dict):
        last, count = moment(obj, "series", "lastObservedTime"), number(obj, "series", "count")
    kind, name = text(regarding, "kind").lower(), text(regarding, "name")
    source = mapping(obj, "source") or mapping(obj, "deprecatedSource")
    component = text(source, "component") or text(obj, "reportingComponent") or text(obj, "reportingController")
    host = text(source, "host") or text(obj, "reportingInstance")
    return [
        age(last, now),
        text(obj, "type"),
        text(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        text(regarding, "fieldPath"),
        f"{component}, {host}" if host else component,
        (text(obj, "message") or text(obj, "note")).strip(),
        age(first, now),
        count,
        name_of(obj),
    ]


def quota(obj: JSON, now: datetime) -> list[Any]:
    hard, used = mapping(obj, "status", "hard"), mapping(obj, "status", "used")
    shown = {name: f"{name}: {quantity_text(used.get(name))}/{quantity_text(hard[name])}" for name in sorted(hard)}
    limits = [line for name, line in shown.items() if name.startswith("limits.")]
    requests = [line for name, line in shown.items() if not name.startswith("limits.")]
    return [name_of(obj), ", ".join(requests), ", ".join(limits), age_of(obj, now)]
