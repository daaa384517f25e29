"""Dynamic resource allocation: claims, slices and classes of devices."""

from __future__ import annotations

from volcano.api.meta import (
    JSON,
    Resource,
)


class ResourceClaim(Resource, frozen=True):
    spec: JSON | None = None
    status: JSON | None = None


class ResourceClaimTemplate(Resource, frozen=True):
    spec: JSON | None = None


class ResourceSlice(Resource, frozen=True):
    spec: JSON | None = None


class DeviceClass(Resource, frozen=True):
    spec: JSON | None = None
