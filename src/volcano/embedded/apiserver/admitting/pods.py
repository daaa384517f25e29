"""Priority, ServiceAccount and DefaultTolerationSeconds: what every new pod is given."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.core import Toleration
from volcano.api.errors import Forbidden
from volcano.api.meta import JSON
from volcano.api.pods.tolerations import names
from volcano.embedded.apiserver.store.contract import ObjectKey, Store
from volcano.machinery.admission import Attributes

PRIORITY_CLASSES: Final = "priorityclasses.scheduling.k8s.io"
TOLERATION_SECONDS: Final = 300
_OUTAGES: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def set_priority(store: Store, attributes: Attributes) -> None:
    """The pod's class decides its priority; without one, the cluster's default class, or zero."""
    spec = _spec(attributes)
    if spec is None:
        return
    name = spec.get("priorityClassName") or ""
    chosen = _priority_class(store, str(name)) if name else _default_class(store)
    if name and chosen is None:
        raise Forbidden(f'pods "{attributes.name}" is forbidden: no PriorityClass with name {name} was found')
    priority = int(chosen.get("value") or 0) if chosen else 0
    given = spec.get("priority")
    if given is not None and given != priority:
        raise Forbidden(
            f'pods "{attributes.name}" is forbidden: the integer value of priority ({given}) must not be provided in '
            f"pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        )
    spec["priority"] = priority
    if chosen:
        spec["priorityClassName"] = chosen["metadata"]["name"]
    policy = (chosen or {}).get("preemptionPolicy") or "PreemptLowerPriority"
    given_policy = spec.get("preemptionPolicy")
    if given_policy is not None and given_policy != policy:
        raise Forbidden(
            f'pods "{attributes.name}" is forbidden: the string value of PreemptionPolicy ({given_policy}) must not be '
            f"provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        )
    spec["preemptionPolicy"] = policy


def _priority_class(store: Store, name: str) -> JSON | None:
    stored = store.find(ObjectKey(PRIORITY_CLASSES, "", name))
    return msgspec.json.decode(stored.raw) if stored else None


def _default_class(store: Store) -> JSON | None:
    """Of several default classes, the one with the lowest value."""
    found = [
        msgspec.json.decode(stored.raw)
        for stored in store.scan(PRIORITY_CLASSES)
        if b'"globalDefault":true' in stored.raw
    ]
    return min(found, key=lambda c: int(c.get("value") or 0), default=None)


def set_service_account(store: Store, attributes: Attributes) -> None:
    """`default` when none is named; one that is named must exist."""
    spec = _spec(attributes)
    if spec is None:
        return
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    if name == "default":
        return  # made by a controller, maybe a moment later
    if store.find(ObjectKey("serviceaccounts", attributes.namespace, str(name))) is None:
        raise Forbidden(
            f'pods "{attributes.name}" is forbidden: error looking up service account {attributes.namespace}/{name}: '
            f'serviceaccount "{name}" not found'
        )


def default_tolerations(store: Store, attributes: Attributes) -> None:
    """A pod stays on a node in trouble for five minutes unless it says otherwise."""
    spec = _spec(attributes)
    if spec is None:
        return
    tolerations = spec.get("tolerations") or []
    if not isinstance(tolerations, list):
        return
    missing = [key for key in _OUTAGES if not any(_names(t, key) for t in tolerations)]
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": TOLERATION_SECONDS}
        for key in missing
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _names(toleration: JSON, key: str) -> bool:
    """Kubernetes looks at key and effect alone here: a pod that says anything of an outage gets no default for it."""
    try:
        return names(msgspec.convert(toleration, Toleration, strict=False), key, "NoExecute")
    except msgspec.ValidationError:
        return False


def _spec(attributes: Attributes) -> JSON | None:
    spec = (attributes.object or {}).get("spec")
    return spec if isinstance(spec, dict) else None
