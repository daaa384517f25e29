"""NamespaceLifecycle: no object is created in a missing or terminating namespace; some cannot be deleted."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import msgspec

from volcano.api.errors import Forbidden, NotFound
from volcano.embedded.apiserver.store.contract import ObjectKey, Store
from volcano.machinery.admission import Attributes

UNDELETABLE: Final = frozenset({"default", "kube-system", "kube-public"})
_EXEMPT: Final = frozenset({"localsubjectaccessreviews.authorization.k8s.io"})


def check_namespace(store: Store, attributes: Attributes) -> None:
    row = attributes.resource
    if not row.namespaced or attributes.subresource or row.qualified in _EXEMPT:
        return
    stored = store.find(ObjectKey("namespaces", "", attributes.namespace))
    if stored is None:
        raise NotFound.of("namespaces", attributes.namespace)
    if _is_terminating(stored.raw):
        message = (
            f'{row.qualified} "{attributes.name}" is forbidden: unable to create new content in namespace '
            f"{attributes.namespace} because it is being terminated"
        )
        cause = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {attributes.namespace} is being terminated",
            "field": "metadata.namespace",
        }
        raise Forbidden(message, details={"name": attributes.name, "kind": row.plural, "causes": [cause]})


@lru_cache(maxsize=1024)
def _is_terminating(raw: bytes) -> bool:
    return bool(msgspec.json.decode(raw)["metadata"].get("deletionTimestamp"))


def check_deletion(attributes: Attributes) -> None:
    if attributes.resource.qualified == "namespaces" and attributes.name in UNDELETABLE:
        raise Forbidden(f'namespaces "{attributes.name}" is forbidden: this namespace may not be deleted')
