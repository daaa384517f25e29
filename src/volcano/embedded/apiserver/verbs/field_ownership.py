"""managedFields: which manager owns which field, updated on every write; and the merge of server-side apply.

The algorithms are schemas.apply.
"""

from __future__ import annotations

from datetime import datetime

from volcano.api.errors import BadRequest
from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.strategy import Strategy
from volcano.embedded.apiserver.schemas.apply.merge import apply_patch, track_update
from volcano.embedded.apiserver.schemas.apply.typed_values import TypedError


def track(
    strategy: Strategy, old: JSON | None, new: JSON, *, manager: str, now: datetime, subresource: str = ""
) -> JSON:
    """The object with its managedFields after a write that was not an apply."""
    if old is None:
        return strategy.track_create(new, manager=manager, now=now)
    schema = strategy.typed_schema
    return track_update(old, new, manager=manager, schema=schema, now=now, subresource=subresource)


def applied(
    strategy: Strategy,
    live: JSON | None,
    given: JSON,
    *,
    manager: str,
    force: bool,
    now: datetime,
    subresource: str = "",
) -> JSON:
    """The object after an apply. A plain apply leaves status alone, an apply of status everything else."""
    if subresource:
        ignored = [field for field in given if field not in ("apiVersion", "kind", "metadata", subresource)]
    else:
        ignored = ["status"] if strategy.row.has_status else []
    try:
        return apply_patch(
            live,
            given,
            manager=manager,
            force=force,
            schema=strategy.typed_schema,
            now=now,
            subresource=subresource,
            ignored=ignored,
        )
    except TypedError as error:  # the stored object itself does not fit its schema
        raise BadRequest(f"failed to create typed live object: {error}") from error
