"""Whose tasks a queue may reclaim: of queues beyond what they deserve, never below what they are guaranteed."""

from __future__ import annotations

from volcano.scheduler.model import PODS, Resources, Task
from volcano.scheduler.plugins.capacity.accounts import Account


def shares_a_dimension(request: Resources, other: Resources, *, pods: bool = True) -> bool:
    names = set(request.names) & set(other.names)
    return bool(names if pods else names - {PODS})


class Reclaim:
    """One search for victims: accounts shrink as victims are chosen, on copies."""

    def __init__(self, reclaimer: Task, account: Account, *, levels: int) -> None:
        self._reclaimer = reclaimer
        self._account = account
        self._levels = levels
        self._left: dict[str, Resources] = {}

    def takes(self, task: Task, account: Account) -> bool:
        """Whether the task is a victim; if so, what its queue holds shrinks."""
        request = task.request
        if not shares_a_dimension(request, self._reclaimer.request, pods=False):
            return False
        held = self._held(account)
        if not account.guarantee.fits(held - request):
            return False
        if not self._is_eligible(request, account, held):
            return False
        checked = self._ancestors_to_check(account)
        if any(not _is_over(self._held(ancestor), ancestor, request) for ancestor in checked):
            return False
        held.subtract(request)
        for ancestor in checked:
            self._held(ancestor).subtract(request)
        return True

    def _held(self, account: Account) -> Resources:
        if account.name not in self._left:
            self._left[account.name] = account.allocated.copy()
        return self._left[account.name]

    def _is_eligible(self, request: Resources, account: Account, held: Resources) -> bool:
        if shares_a_dimension(request, account.deserved):
            return held.beyond_stated(account.deserved, request)
        if not self._levels or not self._is_relative(account):
            return True
        return shares_a_dimension(self._reclaimer.request, self._account.deserved)

    def _is_relative(self, account: Account) -> bool:
        """Both queues have a common ancestor, not the root, within the levels looked at."""
        mine = {a.name for depth in range(1, self._levels + 1) if (a := self._account.above(depth)) is not None}
        theirs = {a.name for depth in range(1, self._levels + 1) if (a := account.above(depth)) is not None}
        return bool(mine & theirs)

    def _ancestors_to_check(self, account: Account) -> list[Account]:
        checked = []
        for depth in range(1, self._levels + 1):
            theirs, mine = account.above(depth), self._account.above(depth)
            if theirs is not None and theirs is not mine:
                checked.append(theirs)
        return checked


def _is_over(held: Resources, account: Account, request: Resources) -> bool:
    if not shares_a_dimension(request, account.deserved):
        return True
    return held.beyond_stated(account.deserved, request)
