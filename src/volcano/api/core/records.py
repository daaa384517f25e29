"""Leases and Events: what components write about themselves and about others."""

from __future__ import annotations

from datetime import datetime

from volcano.api.meta import (
    Model,
    ObjectReference,
    Resource,
)


class LeaseSpec(Model, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(Resource, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class EventSource(Model, frozen=True):
    component: str = ""
    host: str = ""


class Event(Resource, frozen=True):
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    type: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    source: EventSource = EventSource()
