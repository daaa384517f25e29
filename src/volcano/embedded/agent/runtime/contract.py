"""What an agent asks of whatever really runs its pods. Two kinds exist: process_runtime and simulated_runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Protocol, TypeAlias

from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.lifecycle.pod_events import Assigned, PodCommand, PodEvent

Report: TypeAlias = Callable[[str, PodEvent], None]
"""Tells the agent what happened to the pod of this UID."""


class Runtime(Protocol):
    """Carries out the commands of a pod's lifecycle and reports what becomes of them.

    Commands of one pod are carried out in the order they are given; `carry_out` never waits.
    """

    @property
    def name(self) -> str:
        """The scheme of its container ids."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """What its nodes say of it: which kinds of isolation are active, known once it is open."""
        ...

    async def open(self, report: Report) -> None:
        """Get ready; afterwards `resume` knows what still runs from before."""
        ...

    async def close(self) -> None:
        """Stop working; what runs is left alone."""
        ...

    def resume(self, pod: AgentPod) -> Assigned:
        """What already runs of a pod that the agent takes on, and from now on is reported."""
        ...

    def end_unknown_pods(self, uids: Set[str]) -> None:
        """End and forget everything that belongs to none of these pods."""
        ...

    def carry_out(self, pod: AgentPod, command: PodCommand) -> None: ...

    def saw(self, pod: AgentPod, *, is_gone: bool) -> None:
        """A bound pod, on this node or another, as the API server tells it: a peer for someone, perhaps."""
        ...
