"""list: a collection at one revision, whole or in pages that all show that same revision."""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from typing import Final

import msgspec

from volcano.api.errors import BadRequest, Gone, Timeout
from volcano.api.field_errors import forbidden, not_supported
from volcano.api.meta import JSON
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.registry.selection import Selection, selection_from
from volcano.embedded.apiserver.store.contract import Compacted, FutureRevision, Stored
from volcano.embedded.apiserver.verbs.conversion import all_in_asked_version
from volcano.embedded.apiserver.wire.representation import reply
from volcano.embedded.apiserver.wire.requests import invalid_option, number
from volcano.machinery.transport import Response

LATEST: Final = -1
_EXPIRED: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


class Continue(msgspec.Struct, frozen=True):
    """Where the next page starts, and at which revision."""

    rv: int
    namespace: str
    name: str

    def token(self) -> str:
        return base64.urlsafe_b64encode(msgspec.json.encode(self)).decode().rstrip("=")

    @classmethod
    def parse(cls, token: str) -> Continue:
        try:
            padded = token + "=" * (-len(token) % 4)
            return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=cls)
        except (binascii.Error, msgspec.DecodeError, ValueError, RecursionError):
            raise BadRequest("continue key is not valid: invalid continue token") from None


class ExpiredPage(Gone):
    """The revision of a paged list was compacted; the token continues the list at the latest revision."""

    def __init__(self, token: str) -> None:
        super().__init__(_EXPIRED)
        self._token = token

    def status(self) -> JSON:
        return super().status() | {"metadata": {"continue": self._token}}


async def list_objects(call: Call) -> Response:
    selection = selection_from(
        call.request, call.served, namespace=call.target.namespace if call.served.type.namespaced else ""
    )
    limit = number(call.request, "limit") or 0
    if limit < 0:
        raise BadRequest("limit: Invalid value: must be a non-negative integer")
    token = call.request.param("continue")
    if token:
        if call.request.param("resourceVersion") not in ("", "0"):
            raise BadRequest("specifying resource version is not allowed when using continue")
        start = Continue.parse(token)
        if start.rv > call.backend.store.revision:  # not one of ours
            raise BadRequest("continue key is not valid: its resource version is in the future")
        return await _page(call, selection, limit=limit, start=start)
    return await _page(call, selection, limit=limit, start=Continue(revision_asked(call, limit=limit), "", ""))


async def _page(call: Call, selection: Selection, *, limit: int, start: Continue) -> Response:
    store = call.backend.store
    revision = store.revision if start.rv == LATEST else start.rv
    after = (start.namespace, start.name) if start.name else None
    is_whole = not selection.name and not selection.has_selectors
    more = 0
    try:
        if limit and is_whole:
            objects, more = store.page(
                call.served.storage, selection.namespace, revision=revision, after=after, limit=limit
            )
        else:
            objects = store.scan(call.served.storage, selection.namespace, revision=revision)
    except Compacted:
        raise _expired(start) from None
    except FutureRevision:
        raise too_large(revision, store.revision) from None
    if not (limit and is_whole):
        if after is not None:
            objects = objects[bisect_right(objects, after, key=_place) :]
        if not is_whole:
            objects = [stored for stored in objects if selection.matches(stored)]
        if limit and len(objects) > limit:
            objects, more = objects[:limit], len(objects) - limit
    metadata: JSON = {"resourceVersion": str(revision)}
    if more:
        last = objects[-1].key
        metadata["continue"] = Continue(revision, last.namespace, last.name).token()
        if not selection.has_selectors:
            metadata["remainingItemCount"] = more
    return reply(call.renderer().list_of(await all_in_asked_version(call, objects), metadata))


def _place(stored: Stored) -> tuple[str, str]:
    return (stored.key.namespace, stored.key.name)


def _expired(start: Continue) -> Gone:
    if not start.name:
        return Gone(f"The resourceVersion for the provided list is too old: {start.rv}")
    return ExpiredPage(Continue(LATEST, start.namespace, start.name).token())


def too_large(asked: int, current: int) -> Timeout:
    return Timeout(
        f"Too large resource version: {asked}, current: {current}",
        details={
            "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
            "retryAfterSeconds": 1,
        },
    )


def parse_revision(call: Call) -> int | None:
    """The resourceVersion parameter: None when unset."""
    text = call.request.param("resourceVersion")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        why = f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        raise BadRequest(f"invalid resource version: {why}")
    return int(text)


def require_revision(call: Call) -> None:
    """Refuse a resourceVersion that is newer than the store's."""
    asked = parse_revision(call)
    if asked is not None and asked > call.backend.store.revision:
        raise too_large(asked, call.backend.store.revision)


MATCH_FIELD: Final = "resourceVersionMatch"


def revision_asked(call: Call, *, limit: int) -> int:
    """The revision that a list shows: LATEST unless the request asks for an exact one."""
    asked, match = parse_revision(call), call.request.param("resourceVersionMatch")
    if match not in ("", "Exact", "NotOlderThan"):
        raise invalid_option("ListOptions", not_supported(MATCH_FIELD, match, ("Exact", "NotOlderThan", "")))
    if match and asked is None:
        detail = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        raise invalid_option("ListOptions", forbidden(MATCH_FIELD, detail))
    if match == "Exact" and not asked:
        detail = 'resourceVersionMatch "Exact" is forbidden for resourceVersion "0"'
        raise invalid_option("ListOptions", forbidden(MATCH_FIELD, detail))
    if not asked:
        return LATEST
    if match == "Exact" or (not match and limit):
        return asked
    require_revision(call)
    return LATEST
