"""The pods of a workload and what they use, as the autoscaler reads them from the API. Amounts are in thousandths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from volcano.api.durations import DurationError, parse_duration
from volcano.api.meta import JSON
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.times import timestamp_or_none

Amounts = Mapping[str, Mapping[str, int]]
"""Container → resource → amount."""
DEFAULT_WINDOW: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class ScaledPod:
    """A pod of the scaled workload."""

    name: str
    phase: str
    requests: Amounts
    is_deleting: bool = False
    is_ready: bool | None = None  # None: the pod has no such condition yet
    ready_since: datetime | None = None  # when that condition last changed
    started_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MeasuredPod:
    """What the containers of a pod used, measured over `window` up to `at`."""

    containers: Amounts
    at: datetime | None = None
    window: timedelta = DEFAULT_WINDOW


def read_scaled_pod(pod: JSON) -> ScaledPod:
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    ready = next((each for each in status.get("conditions") or [] if each.get("type") == "Ready"), None)
    containers = [
        *(spec.get("containers") or []),
        *(each for each in spec.get("initContainers") or [] if each.get("restartPolicy") == "Always"),
    ]
    return ScaledPod(
        name=metadata["name"],
        phase=str(status.get("phase") or "Pending"),
        requests={each["name"]: _amounts((each.get("resources") or {}).get("requests")) for each in containers},
        is_deleting=bool(metadata.get("deletionTimestamp")),
        is_ready=ready.get("status") == "True" if ready is not None else None,
        ready_since=timestamp_or_none(ready.get("lastTransitionTime")) if ready is not None else None,
        started_at=timestamp_or_none(status.get("startTime")),
    )


def read_usage(metrics: JSON) -> MeasuredPod:
    try:
        window = parse_duration(str(metrics.get("window") or ""))
    except DurationError:
        window = DEFAULT_WINDOW
    containers = {each["name"]: _amounts(each.get("usage")) for each in metrics.get("containers") or []}
    return MeasuredPod(containers, timestamp_or_none(metrics.get("timestamp")), window)


def _amounts(quantities: Any) -> dict[str, int]:
    found = {}
    for name, text in (quantities or {}).items():
        try:
            found[name] = parse_quantity(text).milli
        except QuantityError:
            continue
    return found
