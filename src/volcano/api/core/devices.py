"""Dynamic resource allocation: claims, slices and classes of devices."""

from __future__ import annotations

from typing import Final

from volcano.api.meta import (
    JSON,
    Resource,
)

CLAIM_PROTECTION: Final = "resource.kubernetes.io/delete-protection"
"""The finalizer that keeps a claim while its devices are allocated."""
MAX_CLAIM_USERS: Final = 256


class ResourceClaim(Resource, frozen=True):
    spec: JSON | None = None
    status: JSON | None = None

    @property
    def users(self) -> list[JSON]:
        """The pods, or others, that the claim is reserved for."""
        return [user for user in (self.status or {}).get("reservedFor") or () if isinstance(user, dict)]


class ResourceClaimTemplate(Resource, frozen=True):
    spec: JSON | None = None


class ResourceSlice(Resource, frozen=True):
    spec: JSON | None = None


class DeviceClass(Resource, frozen=True):
    spec: JSON | None = None
