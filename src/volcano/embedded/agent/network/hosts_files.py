"""Keeps the /etc/hosts files of pods up to date when their peers change.

Peers are the pods of one namespace that share a subdomain: the tasks of a job with the svc plugin. Each file is
rewritten in place, because it is mounted as a file. The content is hosts_content's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.network.hosts_content import hosts_file
from volcano.embedded.agent.timers import Timers

REWRITE_DELAY: Final = timedelta(milliseconds=20)
REWRITE_DELAY_PER_PEER: Final = timedelta(milliseconds=2)
"""Debouncing: large jobs start in bursts, so the delay grows with the number of files that a change rewrites."""

Group = tuple[str, str]


class HostsFiles:
    """Groups of peers, and the hosts files of those that run on this node."""

    def __init__(self, timers: Timers, services: Callable[[str], Iterable[tuple[str, str]]]) -> None:
        self._timers, self._services = timers, services
        self._groups: dict[Group, dict[str, AgentPod]] = {}
        self._files: dict[str, tuple[AgentPod, str, Path]] = {}
        self._addresses: dict[str, str] = {}
        self._scheduled: set[Group] = set()
        self._is_rewriting_all = False

    def add(self, pod: AgentPod, address: str, file: Path) -> None:
        """Add a pod of this node and write its file."""
        self._files[pod.uid] = (pod, address, file)
        self._addresses[pod.uid] = address
        self._add_peer(pod)
        self._write(pod.uid)

    def observe(self, pod: AgentPod, *, is_gone: bool = False) -> None:
        """A pod changed in the API, on this node or another; those without a subdomain do not matter."""
        group = _group(pod)
        if group is None:
            return
        known = self._groups.get(group, {}).get(pod.uid)
        if is_gone or pod.is_finished:
            if known is not None:
                self._remove_peer(group, pod.uid)
        elif known is None or known.status.pod_ip != pod.status.pod_ip:
            self._add_peer(pod)

    def remove(self, uid: str) -> None:
        """The pod no longer runs here."""
        found = self._files.pop(uid, None)
        self._addresses.pop(uid, None)
        group = _group(found[0]) if found is not None else None
        if group is not None:
            self._remove_peer(group, uid)

    def services_changed(self) -> None:
        """Rewrite all files; several changes of services at once."""
        if not self._is_rewriting_all:
            self._is_rewriting_all = True
            self._timers.after(REWRITE_DELAY + REWRITE_DELAY_PER_PEER * len(self._files), self._rewrite_all)

    def _rewrite_all(self) -> None:
        self._is_rewriting_all = False
        for uid in tuple(self._files):
            self._write(uid)

    def _add_peer(self, pod: AgentPod) -> None:
        group = _group(pod)
        if group is None:
            return
        self._groups.setdefault(group, {})[pod.uid] = pod
        self._schedule_rewrite(group)

    def _remove_peer(self, group: Group, uid: str) -> None:
        peers = self._groups.get(group, {})
        peers.pop(uid, None)
        if not peers:
            self._groups.pop(group, None)
        self._schedule_rewrite(group)

    def _schedule_rewrite(self, group: Group) -> None:
        if group not in self._scheduled:
            self._scheduled.add(group)
            pause = REWRITE_DELAY + REWRITE_DELAY_PER_PEER * len(self._groups.get(group, ()))
            self._timers.after(pause, lambda: self._rewrite(group))

    def _rewrite(self, group: Group) -> None:
        self._scheduled.discard(group)
        for uid in self._groups.get(group, {}):
            if uid in self._files:
                self._write(uid)

    def _write(self, uid: str) -> None:
        pod, address, file = self._files[uid]
        group = _group(pod)
        peers = [self._with_address(peer) for peer in self._groups.get(group, {}).values()] if group else []
        text = hosts_file(pod, address, peers, self._services(pod.namespace)).encode()
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        except OSError:
            return  # the pod's folder was removed meanwhile
        try:
            os.pwrite(descriptor, text, 0)
            os.ftruncate(descriptor, len(text))
        finally:
            os.close(descriptor)

    def _with_address(self, peer: AgentPod) -> AgentPod:
        """The peer with its address; for pods of this node that is known before it is in the API."""
        address = self._addresses.get(peer.uid)
        if address is None or address == peer.status.pod_ip:
            return peer
        return replace(peer, status=replace(peer.status, pod_ip=address))


def _group(pod: AgentPod) -> Group | None:
    return (pod.namespace, pod.spec.subdomain) if pod.spec.subdomain else None
