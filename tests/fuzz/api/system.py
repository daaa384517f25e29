"""The system that is attacked: a real `volcano up` with simulated nodes, in a network that has only loopback.

Generated webhooks, conversions, API services and probes name addresses; in this network nothing can be sent to them.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import requests

from tests.fuzz.seed_objects import FURTHER_SEEDS, SEEDS
from tests.running_server import Client
from tests.system.real_system import Up, wait_until
from volcano.embedded.agent.kernel import linux
from volcano.embedded.agent.kernel.netlink import Netlink

NAMESPACE = "fuzz"
READY_SECONDS = 10.0
MAX_MEMORY_GROWTH_BYTES = 256 * 2**20
"""What the attack may leave in memory: caches fill, and objects that were made stay."""
SHOWN_LINES = 30
PROBLEM_LINES = ("Traceback", "Task exception was never retrieved", "was never awaited", "Fatal Python error")


def enter_own_network() -> None:
    """This process and all that it starts see a loopback device and no other; raises OSError where that is refused."""
    user, group = os.geteuid(), os.getegid()
    linux.unshare(linux.NEWNET if user == 0 else linux.NEWNET | linux.NEWUSER)
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with Netlink() as kernel:
        kernel.set_up("lo")


@dataclass
class AttackedSystem:
    """The running system, and how requests reach its two HTTP servers."""

    up: Up
    dashboard: str
    token: str
    session: requests.Session
    memory_at_start: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def server(self) -> str:
        return f"https://{self.up.api.server.netloc}"

    def documents(self) -> dict[str, tuple[str, dict[str, Any]]]:
        """Name of a document → the base URL of its paths, and the document."""
        index = self.up.api.get("/openapi/v3").body["paths"]
        found = {
            name: (self.server, self.up.api.get(f"/openapi/v3/{name}").body)
            for name in sorted(index, key=lambda name: name.partition("/")[2])
        }
        answer = self.session.get(f"{self.dashboard}/api/v1/openapi.json", timeout=READY_SECONDS)
        return found | {"dashboard": (self.dashboard, answer.json())}

    def resident_bytes(self) -> int:
        assert self.up.process is not None
        return int(Path(f"/proc/{self.up.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")

    def health_problems(self) -> list[str]:
        """What is wrong with the system after the attack."""
        assert self.up.process is not None
        if self.up.process.poll() is not None:
            return [f"the system has ended with {self.up.process.returncode}"]
        found = self._reported()
        began = time.monotonic()
        for path in ("/readyz", "/livez", f"/api/v1/namespaces/{NAMESPACE}/pods?limit=5"):
            answer = self.up.api.get(path)
            if answer.status != 200:
                found.append(f"{path} answers {answer.status} {answer.raw[:300]!r}")
        if time.monotonic() - began > READY_SECONDS:
            found.append(f"three reads took {time.monotonic() - began:.0f} seconds")
        grown = self.resident_bytes() - self.memory_at_start
        if grown > MAX_MEMORY_GROWTH_BYTES:
            found.append(f"memory has grown by {grown / 2**20:.0f} MB")
        return found

    def _reported(self) -> list[str]:
        """What the system's own output says of failures, each once."""
        lines = self.up.output
        places = [index for index, line in enumerate(lines) if any(word in line for word in PROBLEM_LINES)]
        parts = ["".join(lines[max(0, index - 1) : index + SHOWN_LINES]) for index in places]
        return list({part.splitlines()[-1] + part[-200:]: part for part in parts}.values())


@contextmanager
def attacked_system() -> Iterator[AttackedSystem]:
    with tempfile.TemporaryDirectory(prefix="volcano-fuzz-api-") as folder:
        up = Up(Path(folder), "--simulated-nodes", "3", "--ephemeral", "--dashboard", "0")
        try:
            up.start()
            place = wait_until(lambda: re.search(r"dashboard: +(http://[^/\s]+)", "".join(up.output)), "a dashboard")
            system = AttackedSystem(up, place[1], _administrator(up.api), _session(up.api))
            _seed(up.api)
            system.memory_at_start = system.resident_bytes()
            yield system
        finally:
            up.clean_up()


def _administrator(api: Client) -> str:
    """The token of a service account that may do everything."""
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    api.create(accounts, {"metadata": {"name": "fuzz"}})
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": "fuzz", "namespace": "default"}
    binding = {"metadata": {"name": "fuzz-administrator"}, "roleRef": role, "subjects": [subject]}
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    answer = api.create(f"{accounts}/fuzz/token", {"spec": {"expirationSeconds": 7200}})
    assert answer.status == 201, answer
    return str(answer.body["status"]["token"])


def _session(api: Client) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.verify = str(api.kubeconfig.parent / "pki" / "ca.crt")
    session.cert = tuple(str(api.kubeconfig.parent / "pki" / name) for name in ("admin.crt", "admin.key"))
    return session


def _seed(api: Client) -> None:
    """A good object of many kinds, so that requests have something to read and to change."""
    answer = api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    assert answer.status == 201, answer
    for path, body in (SEEDS | FURTHER_SEEDS).items():
        if path.count("/") <= 6:  # a collection, not something below an object
            answer = api.create(path.replace("/namespaces/default/", f"/namespaces/{NAMESPACE}/"), body)
            assert answer.status in (200, 201), (path, answer)
