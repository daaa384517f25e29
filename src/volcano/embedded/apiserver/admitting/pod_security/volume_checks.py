"""The restricted check of volume types: only those that hold no files of the machine."""

from __future__ import annotations

from typing import Final

from volcano.embedded.apiserver.admitting.pod_security.pod_parts import PodParts, Violation, counted, plural

RESTRICTED_VOLUME_TYPES: Final = frozenset(
    ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret")
)


def restricted_volumes(pod: PodParts) -> Violation | None:
    names: list[str] = []
    types: set[str] = set()
    for volume in pod.spec.get("volumes") or ():
        kinds = {kind for kind, source in volume.items() if kind != "name" and source is not None}
        if kinds - RESTRICTED_VOLUME_TYPES:
            names.append(str(volume.get("name", "")))
            types |= kinds - RESTRICTED_VOLUME_TYPES
    if not names:
        return None
    uses = plural(len(names), "uses", "use")
    listed = counted(sorted(types), "restricted volume type")
    return Violation("restricted volume types", f"{counted(names, 'volume')} {uses} {listed}")
