"""The contract of a runtime, the part of an agent that runs pods: as processes, or simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Protocol, TypeAlias

from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.lifecycle.pod_events import Assigned, PodCommand, PodEvent

Report: TypeAlias = Callable[[str, PodEvent], None]
"""Reports an event of the pod with this UID to the agent."""


class Runtime(Protocol):
    """Carries out the commands of pod_lifecycle and reports their results as events.

    Commands of one pod are carried out in the order they are given; `carry_out` never waits.
    """

    @property
    def name(self) -> str:
        """The scheme of its container identifiers."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations for its nodes: which kinds of isolation are active. Known once it is open."""
        ...

    async def open(self, report: Report) -> None:
        """Connect; afterwards `resume` knows what still runs from before."""
        ...

    async def close(self) -> None:
        """Disconnect; running containers keep running."""
        ...

    def resume(self, pod: AgentPod) -> Assigned:
        """The containers of a pod that already run; from now on their events are reported."""
        ...

    def end_unknown_pods(self, uids: Set[str]) -> None:
        """End and remove everything that belongs to a pod not in `uids`: pods deleted while the agent was away."""
        ...

    def carry_out(self, pod: AgentPod, command: PodCommand) -> None: ...

    def observe(self, pod: AgentPod, *, is_gone: bool) -> None:
        """A bound pod changed, on this node or another: pods of one subdomain know each other's addresses."""
        ...
