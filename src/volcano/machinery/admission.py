"""What admission is asked about: one write on its way to the store, in one form for every part that judges it.

The embedded API server's own checks, Volcano's rules behind its hook, and the webhook over HTTPS all take it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.machinery.transport import User

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"


class Attributes(msgspec.Struct, frozen=True):
    """One write. The object is None on deletion, the old one on creation."""

    operation: str
    resource: ResourceType
    name: str = ""
    namespace: str = ""
    object: JSON | None = None
    old: JSON | None = None
    user: User = User("")
    subresource: str = ""
    dry_run: bool = False
    at: datetime | None = None  # when the write arrived; None: it is not known
