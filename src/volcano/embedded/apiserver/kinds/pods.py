"""Pods: specs of one shape are processed once, few fields may change, and a delete has a grace period."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api import field_errors as says
from volcano.api.core import FINISHED_POD_PHASES
from volcano.api.errors import BadRequest, FieldError
from volcano.api.meta import JSON
from volcano.api.pods.addresses import is_address, is_of_the_machine
from volcano.api.pods.quality import quality_of_service
from volcano.api.pods.requests import read_resources
from volcano.api.pods.validation import validate_pod_annotations, validate_pod_spec
from volcano.embedded.apiserver.kinds.pod_shapes import pod_shape, prepared_spec, shape_errors
from volcano.embedded.apiserver.kinds.strategy import ProxyAddress, Strategy, existing_object
from volcano.embedded.apiserver.schemas.apply.creation_entries import kept_entries, without_uids
from volcano.embedded.apiserver.schemas.apply.merge import track_update
from volcano.embedded.apiserver.store.contract import ObjectKey, Store

PODS: Final = "pods"
DEFAULT_GRACE_SECONDS: Final = 30
_POD_UPDATE: Final = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)
_KEPT_ON_UPDATE: Final = ("nodeName", "priority", "serviceAccount", "preemptionPolicy")
_EPOCH: Final = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


class Pods(Strategy):
    """A spec that other pods had before is not pruned, defaulted and validated again (pod_shapes)."""

    delete_returns_object = True
    keeps_other_parts = True
    selectable_fields: Mapping[str, str] = {
        "spec.nodeName": "",
        "spec.restartPolicy": "",
        "spec.schedulerName": "",
        "spec.serviceAccountName": "",
        "spec.hostNetwork": "false",
        "status.phase": "",
        "status.podIP": "",
        "status.podIPs": "",
        "status.nominatedNodeName": "",
    }

    def field_texts(self, obj: JSON) -> dict[str, str]:
        texts = super().field_texts(obj)
        addresses = (obj.get("status") or {}).get("podIPs")
        if isinstance(addresses, list):
            first = addresses[0] if addresses else None
            texts["status.podIPs"] = str(first.get("ip", "")) if isinstance(first, dict) else ""
        return texts

    def shape_new(self, obj: JSON, *, mode: str, duplicates: Sequence[str] = ()) -> tuple[JSON, list[str]]:
        spec = obj.get("spec")
        prepared = prepared_spec(spec) if type(spec) is dict else None
        if prepared is None:
            obj, warnings = super().shape_new(obj, mode=mode, duplicates=duplicates)
            self.apply_defaults(obj)
            obj["status"] = _initial_status(quality_of_service(read_resources(obj.get("spec"))))
            return obj, warnings
        rest = {field: value for field, value in obj.items() if field != "spec"}
        warnings = []
        if duplicates or prepared.unknown or not self.fits(rest):
            warnings = self.check_fields(rest, mode=mode, duplicates=duplicates, unknown=prepared.unknown)
            self.check_types(rest)
        return {**rest, "spec": prepared.spec, "status": _initial_status(prepared.quality)}, warnings

    def prepare_create(self, obj: JSON) -> None:
        """The status came with the shape."""

    def default_new(self, obj: JSON) -> None:
        """The defaults came with the shape."""

    def prepare_update(self, obj: JSON, old: JSON) -> None:
        if isinstance(obj.get("spec"), dict):
            for field in _KEPT_ON_UPDATE:
                before = (old.get("spec") or {}).get(field)
                if before is not None:
                    obj["spec"].setdefault(field, before)

    def track_create(self, obj: JSON, *, manager: str, now: datetime) -> JSON:
        return _tracked_pod(obj, manager, now)

    def validate(self, obj: JSON) -> Sequence[FieldError]:
        spec = obj.get("spec")
        annotations = (obj.get("metadata") or {}).get("annotations") or {}
        errors = list(shape_errors(pod_shape(spec)))
        if any("kubernetes.io/" in key for key in annotations):
            errors += validate_pod_annotations(annotations, spec, "metadata.annotations")
        return errors

    def validate_update(self, obj: JSON, old: JSON) -> Sequence[FieldError]:
        spec = obj.get("spec")
        if spec == old.get("spec"):
            return []
        if not isinstance(spec, dict):
            return [says.required("spec.containers")]
        return _pod_update(spec, old.get("spec") or {})

    def prepare_part_update(self, obj: JSON, old: JSON, part: str) -> None:
        """Of the wanted pod only the resources of its containers count, or only its ephemeral containers."""
        wanted = obj["spec"] if isinstance(obj.get("spec"), dict) else {}
        if "managedFields" in obj["metadata"]:
            old["metadata"]["managedFields"] = obj["metadata"]["managedFields"]
        obj.clear()
        obj.update(old)
        if part == "ephemeralcontainers":
            _take_over(obj["spec"], wanted, ("ephemeralContainers",))
            return
        for field in ("containers", "initContainers"):
            asked = {each.get("name"): each for each in _objects(wanted.get(field))}
            for container in obj["spec"].get(field) or []:
                if container["name"] in asked:
                    _take_over(container, asked[container["name"]], ("resources", "resizePolicy"))

    def validate_part(self, obj: JSON, old: JSON, part: str) -> Sequence[FieldError]:
        if part not in ("ephemeralcontainers", "resize"):
            return super().validate_part(obj, old, part)
        errors = list(validate_pod_spec(obj.get("spec"), "spec", is_new=False))
        kept = _objects((obj.get("spec") or {}).get("ephemeralContainers"))
        before = _objects((old.get("spec") or {}).get("ephemeralContainers"))
        if any(each not in kept for each in before):
            detail = "existing ephemeral containers may not be changed or removed"
            errors.append(says.forbidden("spec.ephemeralContainers", detail))
        return errors

    def validate_status(self, obj: JSON, old: JSON) -> Sequence[FieldError]:
        """A container that has ended for good does not run again: an older report that arrives late is refused."""
        spec = old.get("spec") or {}
        policy = spec.get("restartPolicy")
        if policy == "Always":
            return []
        sidecars = {
            each.get("name") for each in spec.get("initContainers") or () if each.get("restartPolicy") == "Always"
        }
        errors = []
        for field in ("containerStatuses", "initContainerStatuses"):
            now = {each.get("name"): each.get("state") or {} for each in _statuses(obj, field)}
            for number, before in enumerate(_statuses(old, field)):
                ended = (before.get("state") or {}).get("terminated")
                may_restart = before.get("name") in sidecars or (
                    policy == "OnFailure" and (ended or {}).get("exitCode")
                )
                if not ended or may_restart:
                    continue
                if before.get("name") in now and not now[before.get("name")].get("terminated"):
                    path = f"status.{field}[{number}].state"
                    errors.append(says.forbidden(path, "may not be transitioned to non-terminated state"))
        return errors

    def grace_seconds(self, obj: JSON, asked: int | None) -> int:
        """Only pods on a node need time to end, and a deletion under way can only be shortened."""
        spec, status, metadata = obj.get("spec") or {}, obj.get("status") or {}, obj["metadata"]
        if not spec.get("nodeName") or status.get("phase") in FINISHED_POD_PHASES:
            return 0
        remaining: int = metadata.get("deletionGracePeriodSeconds") or 0
        if metadata.get("deletionTimestamp"):
            return remaining if asked is None else min(asked, remaining)
        return int(spec.get("terminationGracePeriodSeconds", DEFAULT_GRACE_SECONDS) if asked is None else asked)

    def mark_deleted(self, obj: JSON, now: str) -> None:
        metadata = obj["metadata"]
        metadata["deletionTimestamp"] = metadata.get("deletionTimestamp") or now
        metadata["deletionGracePeriodSeconds"] = 0

    def proxy_address(self, store: Store, namespace: str, name: str, port: str) -> ProxyAddress:
        """The pod's address; without a port, its first container port or 80."""
        pod = existing_object(store, ObjectKey(PODS, namespace, name))
        address = str((pod.get("status") or {}).get("podIP") or "")
        if not _may_be_reached(store, pod, address):
            raise BadRequest("address not allowed")
        ports = [p for c in pod["spec"].get("containers") or [] for p in c.get("ports") or []]
        if not port:
            port = str(ports[0].get("containerPort")) if ports else "80"
        if not port.isdigit():
            named = [p for p in ports if p.get("name") == port]
            if not named:
                raise BadRequest(f"no port {port!r} in pod {name!r}")
            port = str(named[0].get("containerPort"))
        if not 0 < int(port) < 65536:
            raise BadRequest(f"invalid port {port!r}")
        return ProxyAddress(f"[{address}]" if ":" in address else address, int(port), "http")


def _may_be_reached(store: Store, pod: JSON, address: str) -> bool:
    """Who may write the status of pods must not get at services of the machine; only pods on its network are there."""
    if not is_of_the_machine(address):
        return is_address(address)
    spec = pod.get("spec") or {}
    node = store.find(ObjectKey("nodes", "", str(spec.get("nodeName") or "")))
    if node is None or not spec.get("hostNetwork"):
        return False
    addresses = (msgspec.json.decode(node.raw).get("status") or {}).get("addresses")
    return any(each.get("address") == address for each in _objects(addresses))


def _objects(found: Any) -> list[JSON]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _take_over(kept: JSON, wanted: JSON, fields: Sequence[str]) -> None:
    for field in fields:
        if wanted.get(field) is not None:
            kept[field] = wanted[field]
        else:
            kept.pop(field, None)


def _statuses(pod: JSON, field: str) -> list[JSON]:
    return _objects((pod.get("status") or {}).get(field))


def _initial_status(quality: str) -> JSON:
    return {"phase": "Pending", "qosClass": quality}


def _pod_update(spec: JSON, old: JSON) -> list[FieldError]:
    """Few fields of a pod may change once it exists."""
    errors: list[FieldError] = []
    for field in ("containers", "initContainers"):
        if len(spec.get(field) or []) != len(old.get(field) or []):
            errors.append(says.forbidden(f"spec.{field}", "pod updates may not add or remove containers"))
            return errors
    gates, had = _names(spec.get("schedulingGates")), _names(old.get("schedulingGates"))
    if not gates <= had:
        added = ", ".join(sorted(gates - had))
        errors.append(
            says.forbidden("spec.schedulingGates", f"only deletion is allowed, but found new scheduling gate '{added}'")
        )
    kept = [t for t in old.get("tolerations") or [] if t not in (spec.get("tolerations") or [])]
    if kept and not all(_only_seconds_differ(t, spec.get("tolerations") or []) for t in kept):
        errors.append(
            says.forbidden("spec.tolerations", "existing toleration can not be modified except its tolerationSeconds")
        )
    if _frozen_part(spec, old, gated=bool(had)) != _frozen_part(old, old, gated=bool(had)):
        errors.append(says.forbidden("spec", _POD_UPDATE))
    return errors


def _names(items: Any) -> set[str]:
    return {str(item.get("name")) for item in items or [] if isinstance(item, dict)}


def _only_seconds_differ(toleration: JSON, others: list[Any]) -> bool:
    wanted = {k: v for k, v in toleration.items() if k != "tolerationSeconds"}
    return any(
        {k: v for k, v in o.items() if k != "tolerationSeconds"} == wanted for o in others if isinstance(o, dict)
    )


def _frozen_part(spec: JSON, old: JSON, *, gated: bool) -> JSON:
    """What must not change: everything but the fields named in the message."""
    frozen = copy.deepcopy(spec)
    for field in ("tolerations", "activeDeadlineSeconds", "schedulingGates"):
        frozen.pop(field, None)
    grace = old.get("terminationGracePeriodSeconds")
    if isinstance(grace, int) and grace < 0 and spec.get("terminationGracePeriodSeconds") == 1:
        frozen["terminationGracePeriodSeconds"] = grace
    if gated:
        for field in ("nodeSelector", "affinity"):
            frozen.pop(field, None)
    for field in ("containers", "initContainers"):
        for container in frozen.get(field) or []:
            if isinstance(container, dict):
                container.pop("image", None)
    return frozen


def _tracked_pod(pod: JSON, manager: str, now: datetime) -> JSON:
    """The managed fields are the same for all new pods of one shape; only the time differs."""
    metadata = pod["metadata"]
    owners, uids = without_uids(metadata.get("ownerReferences") or [])
    frame = {
        "metadata": {
            "labels": dict.fromkeys(metadata.get("labels") or {}, ""),
            "annotations": dict.fromkeys(metadata.get("annotations") or {}, ""),
            "ownerReferences": owners,
            "finalizers": metadata.get("finalizers") or [],
            "generateName": "a" if metadata.get("generateName") else "",
        },
        "status": pod.get("status") or {},
    }
    shape, sort = pod_shape(pod.get("spec")), msgspec.json.encode(frame)
    entries = kept_entries((shape, sort, manager), lambda: _entries_of_pod(shape, sort, manager), uids, now)
    kept = {field: value for field, value in metadata.items() if field != "managedFields"}
    if entries:
        kept["managedFields"] = entries
    return {**pod, "metadata": kept}


def _entries_of_pod(shape: bytes, frame: bytes, manager: str) -> list[JSON]:
    pod = {"apiVersion": "v1", "kind": "Pod", **msgspec.json.decode(frame), "spec": msgspec.json.decode(shape)}
    pod["metadata"] = {field: value for field, value in pod["metadata"].items() if value}
    tracked = track_update(None, pod, manager=manager, schema="io.k8s.api.core.v1.Pod", now=_EPOCH)
    found: list[JSON] = tracked["metadata"].get("managedFields") or []
    return found
