"""bus.volcano.sh/v1alpha1: Command, an action asked of a Job or a Queue from outside."""

from __future__ import annotations

from volcano.api.meta import OwnerReference, Resource


class Command(Resource, frozen=True):
    action: str = ""
    target: OwnerReference | None = None
    reason: str = ""
    message: str = ""
