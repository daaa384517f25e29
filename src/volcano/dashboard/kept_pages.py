"""KeptPages: pages that were drawn a moment ago, given again while nothing that they show has changed.

A page belongs to a session. The redrawn part of a page that is made of watched objects alone has nothing of the session
in it, and is given to everybody whose rights have the same answers: fifty open pages are drawn once for each change.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

import msgspec

from volcano.dashboard.callers import Caller, RightsUsed
from volcano.machinery.transport import Response

MAX_KEPT_PAGES: Final = 64
MAX_KEPT_FOR_OTHERS: Final = 16
"""Of one page, for readers with different rights."""


class _ForOthers(msgspec.Struct):
    rights: RightsUsed
    response: Response


class KeptPages:
    def __init__(self) -> None:
        self._own: OrderedDict[tuple[Any, ...], Response] = OrderedDict()
        self._shared: OrderedDict[tuple[Any, ...], list[_ForOthers]] = OrderedDict()

    async def find(self, page: tuple[Any, ...], session: str, caller: Caller) -> Response | None:
        """`page` names everything that the page depends on, but for the session and its rights."""
        found = self._own.get((session, *page))
        if found is not None:
            return found
        for each in self._shared.get(page, ()):
            if await each.rights.are_those_of(caller):
                return each.response
        return None

    def keep(self, page: tuple[Any, ...], session: str, response: Response, rights: RightsUsed | None) -> None:
        """`rights`: those that it was made by, where others may see it."""
        if rights is None:
            self._own[session, *page] = response
        else:
            found = self._shared.setdefault(page, [])
            if len(found) < MAX_KEPT_FOR_OTHERS:
                found.append(_ForOthers(rights, response))
        for kept in (self._own, self._shared):
            if len(kept) > MAX_KEPT_PAGES:
                kept.popitem(last=False)
