"""The queues' accounts: what each holds, deserves and may have; flat, or as a tree below `root`.

A queue with an unknown parent or on a cycle is set aside, with its descendants: its jobs wait, others are served.
"""

from __future__ import annotations

from volcano.api.scheduling import ROOT_QUEUE
from volcano.scheduler.core.ledger import Sums
from volcano.scheduler.core.queue_shares import QueueShare, account_for
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, MEMORY, Resources
from volcano.scheduler.model.resources import GREATEST, GREATEST_SCALAR, dominant_share


class Account(QueueShare):
    """With its place in the tree: `ancestors` from the root down to the direct parent."""

    __slots__ = ("ancestors", "children")

    def open_tree(self) -> None:
        self.ancestors: list[Account] = []
        self.children: list[Account] = []

    @property
    def is_leaf(self) -> bool:
        return not self.children

    def refresh_share(self) -> None:
        """A queue that deserves nothing is served last: its share counts as full."""
        self.share = 1.0 if self.deserved.is_empty else dominant_share(self.allocated, self.deserved)

    @property
    def line(self) -> list[Account]:
        """The queue itself, then its ancestors upwards."""
        return [self, *reversed(self.ancestors)]

    def above(self, depth: int) -> Account | None:
        """The ancestor `levels` up (1 is the parent); never the root."""
        place = len(self.ancestors) - depth
        return self.ancestors[place] if place > 0 else None


def _account(session: Session, name: str) -> Account:
    plain = account_for(session.queues[name], Sums())
    account = Account(plain.queue, plain.guarantee, plain.capability)
    account.deserved = (plain.queue.deserved or Resources()).copy()
    account.open_tree()
    return account


def flat_accounts(session: Session) -> dict[str, Account]:
    """Queues that have jobs, side by side."""
    accounts: dict[str, Account] = {}
    for name, sums in session.snapshot.ledger.queues.items():
        if sums.jobs and name in session.queues and session.queues[name].is_charged:
            accounts[name] = _account(session, name)
            accounts[name].enter(sums)
    guaranteed = Resources()
    for queue in session.queues.values():
        guaranteed.add(queue.guarantee or Resources())
    free = session.total.exceeding(guaranteed)
    for account in accounts.values():
        account.real_capability = free + account.guarantee
        if account.capability is not None:
            account.real_capability = account.real_capability.limited(account.capability, missing_is_infinite=True)
        bounded = account.deserved.limited(account.real_capability, missing_is_infinite=True)
        account.deserved = bounded.at_least(account.guarantee)
        account.refresh_share()
    return accounts


def tree_accounts(session: Session) -> dict[str, Account] | None:
    """All queues as a tree; None without a root."""
    if ROOT_QUEUE not in session.queues:
        return None
    accounts = {name: _account(session, name) for name, queue in session.queues.items() if queue.is_charged}
    kept = {name: account for name, account in accounts.items() if _descend(session, accounts, account)}
    for account in kept.values():
        if account.ancestors:
            account.ancestors[-1].children.append(account)
    for name, sums in session.snapshot.ledger.queues.items():
        for member in kept[name].line if name in kept else ():
            member.enter(sums)
    root = kept[ROOT_QUEUE]
    _open_root(session, root)
    _bound_children(root, is_root=True)
    for account in kept.values():
        account.refresh_share()
    return kept


def _descend(session: Session, accounts: dict[str, Account], account: Account) -> bool:
    """Fill in the ancestors; False when the way up does not end at the root."""
    name, seen = account.name, {account.name}
    while name != ROOT_QUEUE:
        name = session.queues[name].parent or ROOT_QUEUE
        if name in seen or name not in accounts:
            said = f"its parent {name} {'is its own descendant' if name in seen else 'does not exist'}"
            session.snapshot.set_aside[f"Queue/{account.name}"] = said
            return False
        seen.add(name)
        account.ancestors.insert(0, accounts[name])
    return True


def _open_root(session: Session, root: Account) -> None:
    if root.capability is None:
        root.capability = Resources({CPU: GREATEST, MEMORY: GREATEST})
        for name in session.total.scalars:
            root.capability.amounts[name] = GREATEST_SCALAR
    root.real_capability = root.capability.copy()


def _bound_children(parent: Account, *, is_root: bool = False) -> None:
    """From the top down: what a child may have is what the parent may, less what siblings are guaranteed."""
    deserved, guaranteed = Resources(), Resources()
    for child in parent.children:
        child.deserved = child.deserved.at_least(child.guarantee)
        child.capability = _inherited(child, parent)
        deserved.add(child.deserved)
        guaranteed.add(child.guarantee)
    if is_root:
        parent.deserved, parent.guarantee = deserved, guaranteed
    for child in parent.children:
        free = parent.real_capability.exceeding(guaranteed)
        child.real_capability = free.add(child.guarantee).limited(child.capability, missing_is_infinite=True)  # type: ignore[arg-type]
        _bound_children(child)


def _inherited(child: Account, parent: Account) -> Resources:
    above = parent.capability or Resources()
    capability = (child.queue.capability or Resources()).copy()
    for name, amount in above.amounts.items():
        if name in (CPU, MEMORY):
            if capability[name] <= 0.0:
                capability.amounts[name] = amount
        elif name not in capability:
            capability.amounts[name] = amount
    return capability
