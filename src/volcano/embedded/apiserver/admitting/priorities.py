"""Priority: a pod's class decides its priority, and at most one class is the cluster's default."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from volcano.api.errors import Forbidden
from volcano.embedded.apiserver.kinds.priority_classes import DEFAULT_POLICY, PRIORITY_CLASSES
from volcano.embedded.apiserver.store.contract import ObjectKey, Store
from volcano.machinery.admission import Attributes


class _PriorityClass(msgspec.Struct, frozen=True):
    """A PriorityClass as far as admission reads it."""

    name: str
    value: int
    preemption_policy: str
    is_default: bool


def set_priority(store: Store, attributes: Attributes) -> None:
    """The pod's class decides its priority; without one, the cluster's default class, or zero."""
    spec = (attributes.object or {}).get("spec")
    if not isinstance(spec, dict):
        return
    name = spec.get("priorityClassName") or ""
    chosen = _named_class(store, str(name)) if name else _default_class(store)
    if name and chosen is None:
        raise Forbidden(f'pods "{attributes.name}" is forbidden: no PriorityClass with name {name} was found')
    priority = chosen.value if chosen else 0
    given = spec.get("priority")
    if given is not None and given != priority:
        raise Forbidden(
            f'pods "{attributes.name}" is forbidden: the integer value of priority ({given}) must not be provided in '
            f"pod spec; priority admission controller computed {priority} from the given PriorityClass name"
        )
    spec["priority"] = priority
    if chosen:
        spec["priorityClassName"] = chosen.name
    policy = chosen.preemption_policy if chosen else DEFAULT_POLICY
    given_policy = spec.get("preemptionPolicy")
    if given_policy is not None and given_policy != policy:
        raise Forbidden(
            f'pods "{attributes.name}" is forbidden: the string value of PreemptionPolicy ({given_policy}) must not be '
            f"provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
        )
    spec["preemptionPolicy"] = policy


def check_one_default_priority(store: Store, attributes: Attributes) -> None:
    if not (attributes.object or {}).get("globalDefault"):
        return
    for stored in store.scan(PRIORITY_CLASSES):
        if stored.key.name != attributes.name and _read(stored.raw).is_default:
            raise Forbidden(
                f'{PRIORITY_CLASSES} "{attributes.name}" is forbidden: PriorityClass {stored.key.name} '
                "is already marked as default. Only one default can exist"
            )


def _named_class(store: Store, name: str) -> _PriorityClass | None:
    stored = store.find(ObjectKey(PRIORITY_CLASSES, "", name))
    return _read(stored.raw) if stored else None


def _default_class(store: Store) -> _PriorityClass | None:
    """Of several default classes, the one with the lowest value."""
    found = (_read(stored.raw) for stored in store.scan(PRIORITY_CLASSES))
    return min((each for each in found if each.is_default), key=lambda each: each.value, default=None)


@lru_cache(maxsize=256)
def _read(raw: bytes) -> _PriorityClass:
    obj = msgspec.json.decode(raw)
    policy = obj.get("preemptionPolicy") or DEFAULT_POLICY
    return _PriorityClass(obj["metadata"]["name"], int(obj.get("value") or 0), policy, bool(obj.get("globalDefault")))
