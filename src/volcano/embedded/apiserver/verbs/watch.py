"""watch: the changes of a collection or of one object, from a revision on."""

from __future__ import annotations

from typing import Final

from volcano.api.errors import BadRequest, FieldError, Gone, Invalid
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.registry.selection import selection_from
from volcano.embedded.apiserver.registry.watch_hub import Watch
from volcano.embedded.apiserver.store.contract import Compacted, FutureRevision, Stored
from volcano.embedded.apiserver.verbs.conversion import AsStored, converted_events
from volcano.embedded.apiserver.verbs.listing import parse_revision, require_revision, too_large
from volcano.embedded.apiserver.wire.requests import flag, number
from volcano.machinery.transport import Response

DEFAULT_WATCH_SECONDS: Final = 1800
MAX_WATCH_SECONDS: Final = 24 * 3600


async def watch(call: Call) -> Response:
    selection = selection_from(
        call.request,
        call.served,
        namespace=call.target.namespace if call.served.type.namespaced else "",
        name=call.target.name,
    )
    store, since = call.backend.store, parse_revision(call)
    bookmarks = flag(call.request, "allowWatchBookmarks")
    sends_initial = _sends_initial(call)
    seconds = number(call.request, "timeoutSeconds") or DEFAULT_WATCH_SECONDS
    initial: list[Stored] = []
    if sends_initial or (sends_initial is None and not since):
        require_revision(call)
        since = store.revision
        initial = [s for s in store.scan(call.served.storage, selection.namespace) if selection.matches(s)]
    elif not since:
        since = store.revision
    shown = call.renderer()
    converts = call.strategy.conversion is not None
    asked = Watch(selection, AsStored(shown) if converts else shown, max(1, min(seconds, MAX_WATCH_SECONDS)), bookmarks)
    try:
        stream = call.backend.hub.stream(
            asked, since=since, initial=initial, announces_end=bool(sends_initial) and bookmarks
        )
    except Compacted as gone:
        raise Gone(f"too old resource version: {since} ({gone.oldest})") from None
    except FutureRevision:
        raise too_large(since, store.revision) from None
    if converts:
        stream = converted_events(call, shown, stream)
    return Response(200, {"content-type": "application/json"}, stream=stream)


def _sends_initial(call: Call) -> bool | None:
    match = call.request.param("resourceVersionMatch")
    if not call.request.params("sendInitialEvents"):
        if match:
            raise _forbidden(
                call,
                "resourceVersionMatch",
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            )
        return None
    if match != "NotOlderThan":
        raise _forbidden(
            call, "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )
    if call.request.param("continue"):
        raise BadRequest("continue: Forbidden: continue is forbidden for watch")
    return flag(call.request, "sendInitialEvents")


def _forbidden(call: Call, path: str, detail: str) -> Invalid:
    error = FieldError(path, f"Forbidden: {detail}", "FieldValueForbidden")
    return Invalid.of("ListOptions", "", [error], "meta.k8s.io")
