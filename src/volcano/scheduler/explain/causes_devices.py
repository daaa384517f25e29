"""Devices of ResourceClaims that are missing: how many a job needs together, how many exist, how many are free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from volcano.api.core import ResourceClaim
from volcano.api.meta import Key
from volcano.api.why.reasons import Finding, finding
from volcano.scheduler.core.dra.asked import ClaimAsk, DeviceAsk, UnreadableClaim, read_claim
from volcano.scheduler.core.dra.device_search import class_selectors
from volcano.scheduler.core.dra.device_usage import DeviceUsage
from volcano.scheduler.core.dra.pools import Inventory, kept_devices
from volcano.scheduler.core.dra.published import PublishedDevice
from volcano.scheduler.core.dra.selectors import SelectorFailed, is_selected
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import ClusterObjects, Job

Kind = tuple[str, tuple[str, ...]]
"""A class, and the selectors of a request."""


def device_cause(session: Session, job: Job, least: int) -> Finding | None:
    """The devices that so many of a job's pods cannot have together; None when enough are free."""
    around = session.snapshot.cluster
    tasks = [task for task in job.tasks.values() if not task.is_terminated][: max(least, 1)]
    keys = {Key(*name.split("/", 1)) for task in tasks for name in task.claims}
    claims = [claim for key in sorted(keys) if (claim := around.resource_claims.get(key)) is not None]
    needed = _needed(claims)
    if not needed:
        return None
    devices = list(Inventory(around.resource_slices.values(), kept_devices(around.kept)).all_devices())
    usage = _usage(around, keys)
    for (class_name, selectors), count in needed.items():
        if class_name not in around.device_classes:
            return finding("DeviceClassNotFound", class_name=class_name)
        found = _suitable(around, class_name, selectors, devices)
        suitable = [device for device in found if not device.needs_conditions]
        free = [device for device in suitable if device.id not in usage.taken]
        if len(suitable) < count <= len(found):
            others = len(found) - len(suitable)
            return finding(
                "DevicesNeedConfirmation", most=len(suitable), needed=count, count=others, class_name=class_name
            )
        if len(suitable) < count:
            return finding("NotEnoughDevices", most=len(suitable), needed=count, class_name=class_name)
        if len(free) < count:
            return finding("DevicesInUse", most=len(free), needed=count, class_name=class_name)
    return None


def _needed(claims: Sequence[ResourceClaim]) -> Counter[Kind]:
    """How many devices of each kind, by the requests that have no alternatives."""
    needed: Counter[Kind] = Counter()
    for claim in claims:
        if (claim.status or {}).get("allocation"):
            continue
        for ask in _asks(claim):
            needed[ask.class_name, ask.selectors] += ask.count
    return needed


def _asks(claim: ResourceClaim) -> Iterator[DeviceAsk]:
    try:
        read: ClaimAsk = read_claim(claim.spec)
    except UnreadableClaim:
        return
    yield from (asks[0] for asks in read.requests if len(asks) == 1 and not asks[0].takes_all and not asks[0].is_admin)


def _usage(around: ClusterObjects, own: set[Key]) -> DeviceUsage:
    usage = DeviceUsage()
    for claim in around.resource_claims.values():
        allocation = (claim.status or {}).get("allocation")
        if isinstance(allocation, dict) and claim.key not in own:
            usage.add(allocation)
    return usage


def _suitable(
    around: ClusterObjects, class_name: str, selectors: tuple[str, ...], devices: Sequence[PublishedDevice]
) -> list[PublishedDevice]:
    expressions = (*class_selectors(around.device_classes[class_name]), *selectors)

    def suits(device: PublishedDevice) -> bool:
        try:
            return not device.is_shareable and all(is_selected(expression, device) for expression in expressions)
        except SelectorFailed:
            return False

    return [device for device in devices if suits(device)]
