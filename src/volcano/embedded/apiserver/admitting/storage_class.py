"""DefaultStorageClass: the storage class of claims that name none."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.embedded.apiserver.store.contract import Store
from volcano.machinery.admission import Attributes

STORAGE_CLASSES: Final = "storageclasses.storage.k8s.io"
_IS_DEFAULT: Final = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def set_storage_class(store: Store, attributes: Attributes) -> None:
    """The newest default class, as Kubernetes picks."""
    spec = (attributes.object or {}).get("spec")
    if not isinstance(spec, dict) or spec.get("storageClassName") is not None:
        return
    if "volume.beta.kubernetes.io/storage-class" in ((attributes.object or {})["metadata"].get("annotations") or {}):
        return
    found = []
    for stored in store.scan(STORAGE_CLASSES):
        storage_class = msgspec.json.decode(stored.raw)
        annotations = storage_class["metadata"].get("annotations") or {}
        if any(annotations.get(key) == "true" for key in _IS_DEFAULT):
            found.append((storage_class["metadata"]["creationTimestamp"], storage_class["metadata"]["name"]))
    if found:
        newest = max(moment for moment, _ in found)
        spec["storageClassName"] = min(name for moment, name in found if moment == newest)
