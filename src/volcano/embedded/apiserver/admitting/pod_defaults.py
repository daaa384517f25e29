"""ServiceAccount and DefaultTolerationSeconds: what every new pod is given."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.core import Toleration
from volcano.api.errors import Forbidden
from volcano.api.meta import JSON
from volcano.api.pods.tolerations import names
from volcano.embedded.apiserver.store.contract import ObjectKey, Store
from volcano.machinery.admission import Attributes

OUTAGE_TOLERATION_SECONDS: Final = 300
_OUTAGES: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def set_service_account(store: Store, attributes: Attributes) -> None:
    """`default` when none is named; one that is named must exist."""
    spec = _spec(attributes)
    if spec is None:
        return
    name = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = name
    if name == "default":
        return  # a controller creates it, maybe a moment later
    if store.find(ObjectKey("serviceaccounts", attributes.namespace, str(name))) is None:
        raise Forbidden(
            f'pods "{attributes.name}" is forbidden: error looking up service account {attributes.namespace}/{name}: '
            f'serviceaccount "{name}" not found'
        )


def default_tolerations(store: Store, attributes: Attributes) -> None:
    """A pod without tolerations of its own stays on a node that is not ready or unreachable for five minutes."""
    spec = _spec(attributes)
    if spec is None:
        return
    tolerations = spec.get("tolerations") or []
    if not isinstance(tolerations, list):
        return
    missing = [key for key in _OUTAGES if not any(_names(t, key) for t in tolerations)]
    added = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": OUTAGE_TOLERATION_SECONDS}
        for key in missing
    ]
    if added:
        spec["tolerations"] = [*tolerations, *added]


def _names(toleration: JSON, key: str) -> bool:
    """Kubernetes compares key and effect alone: a pod that tolerates an outage in any way gets no default for it."""
    try:
        return names(msgspec.convert(toleration, Toleration, strict=False), key, "NoExecute")
    except msgspec.ValidationError:
        return False


def _spec(attributes: Attributes) -> JSON | None:
    spec = (attributes.object or {}).get("spec")
    return spec if isinstance(spec, dict) else None
