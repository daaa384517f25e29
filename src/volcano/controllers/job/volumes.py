"""Volumes of a job: claims that it makes or uses, and how its pods mount them.

Names that look random come from the job's UID and the volume's index, so that deciding twice names the same claim.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Final

from volcano.api.batch import Job, JobVolume
from volcano.api.core import PersistentVolumeClaim
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.controllers.job.view import JobView
from volcano.machinery.plan import NOTHING, Create, Patch, Plan, owner_reference, ref

CLAIM: Final = resource_type(PersistentVolumeClaim)
NAME_ALPHABET: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
SUFFIX_LENGTH: Final = 12
MAX_NAME_ATTEMPTS: Final = 16


def derived_name(*parts: str | int) -> str:
    """Twelve characters of [0-9a-z] that are the same each time."""
    number = int.from_bytes(hashlib.sha256("/".join(map(str, parts)).encode()).digest())
    characters = []
    for _ in range(SUFFIX_LENGTH):
        number, digit = divmod(number, len(NAME_ALPHABET))
        characters.append(NAME_ALPHABET[digit])
    return "".join(characters)


def claim_name(view: JobView, index: int) -> str:
    """A name that no claim of another owner has."""
    job = view.job
    for attempt in range(MAX_NAME_ATTEMPTS):
        name = f"{job.name}-pvc-{derived_name(job.uid, 'claim', index, attempt)}"
        found = view.world.get(PersistentVolumeClaim, Key(job.namespace, name))
        if found is None or _is_ours(job, found):
            return name
    return f"{job.name}-pvc-{derived_name(job.uid, 'claim', index)}"


def _is_ours(job: Job, claim: PersistentVolumeClaim) -> bool:
    return any(owner.uid == job.uid for owner in claim.metadata.owner_references)


def naming(view: JobView) -> Plan:
    """Make the claims that the job describes, then write their names into its spec."""
    steps: list[Create] = []
    names: list[JSON] = []
    for index, volume in enumerate(view.job.spec.volumes):
        if volume.volume_claim_name:
            continue
        name = claim_name(view, index)
        names.append({"op": "add", "path": f"/spec/volumes/{index}/volumeClaimName", "value": name})
        if volume.volume_claim is not None:
            steps.append(_claim(view.job, name, volume.volume_claim))
    if not names:
        return NOTHING
    # The list of volumes must be unchanged, so the patch tests the resource version first.
    version = view.job.metadata.resource_version
    guard = [{"op": "test", "path": "/metadata/resourceVersion", "value": version}] if version else []
    return (*steps, Patch(ref(view.job), [*guard, *names], kind="json"))


def making(view: JobView) -> Plan:
    """Create the generated claims that the spec already names and that do not exist."""
    return tuple(
        _claim(view.job, volume.volume_claim_name, volume.volume_claim)
        for index, volume in enumerate(view.job.spec.volumes)
        if volume.volume_claim is not None and _is_generated(view, index) and not _exists(view, volume)
    )


def missing_claim(view: JobView) -> str:
    """The first claim the job refers to (not one it creates) that does not exist; empty when there is none."""
    for index, volume in enumerate(view.job.spec.volumes):
        if volume.volume_claim_name and not _is_generated(view, index) and not _exists(view, volume):
            return volume.volume_claim_name
    return ""


def _is_generated(view: JobView, index: int) -> bool:
    return view.job.spec.volumes[index].volume_claim_name == claim_name(view, index)


def _exists(view: JobView, volume: JobVolume) -> bool:
    return view.world.get(PersistentVolumeClaim, Key(view.job.namespace, volume.volume_claim_name)) is not None


def _claim(job: Job, name: str, spec: JSON) -> Create:
    metadata = {"name": name, "namespace": job.namespace, "ownerReferences": [owner_reference(job)]}
    return Create(CLAIM, {"metadata": metadata, "spec": spec})


def claims(job: Job) -> list[str]:
    return list(dict.fromkeys(volume.volume_claim_name for volume in job.spec.volumes if volume.volume_claim_name))


def mounts(job: Job) -> Iterator[tuple[str, str, str]]:
    """Volume name, claim and mount path; a claim that is listed twice is mounted once."""
    seen: set[str] = set()
    for index, volume in enumerate(job.spec.volumes):
        if volume.volume_claim_name and volume.volume_claim_name not in seen:
            seen.add(volume.volume_claim_name)
            yield f"{job.name}-{derived_name(job.uid, 'volume', index)}", volume.volume_claim_name, volume.mount_path
