"""ResourceClaims: their spec and an allocation do not change, and only an allocated claim has users."""

from __future__ import annotations

from collections.abc import Iterator

from volcano.api import field_errors as says
from volcano.api.core.devices import MAX_CLAIM_USERS
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.strategy import IMMUTABLE, Strategy


class ResourceClaims(Strategy):
    def validate_update(self, obj: JSON, old: JSON) -> list[FieldError]:
        if obj.get("spec") != old.get("spec"):
            return [says.invalid("spec", obj.get("spec"), IMMUTABLE)]
        return []

    def validate_status(self, obj: JSON, old: JSON) -> list[FieldError]:
        return list(_status_errors(obj.get("status") or {}, old))


def _status_errors(status: JSON, old: JSON) -> Iterator[FieldError]:
    before = old.get("status") or {}
    users, allocation = status.get("reservedFor") or [], status.get("allocation")
    if users and not allocation:
        yield says.forbidden("status.reservedFor", "may not be specified when `allocated` is not set")
    if len(users) > MAX_CLAIM_USERS:
        yield says.too_many("status.reservedFor", len(users), MAX_CLAIM_USERS)
    uids = [str(user.get("uid")) for user in users]
    for number, uid in enumerate(uids):
        if uid in uids[:number]:
            yield says.duplicate(f"status.reservedFor[{number}].uid", uid)
    if before.get("allocation") and allocation and allocation != before["allocation"]:
        yield says.invalid("status.allocation", allocation, IMMUTABLE)
    if old["metadata"].get("deletionTimestamp"):
        known = {str(user.get("uid")) for user in before.get("reservedFor") or ()}
        if set(uids) - known:
            why = "new entries may not be added while `deallocationRequested` or `deletionTimestamp` are set"
            yield says.forbidden("status.reservedFor", why)
