"""Sets up a machine with secrets and a pod to protect, lets another pod attack it, and prints the table of ways.

`python -m tests.system.agent.escapes FOLDER [root]` does this as the current user; tests/system/agent/test_escapes.py does it as root,
with pods of the default user and of root, and as an ordinary user.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import socket
import sys
from pathlib import Path
from typing import Any

from tests.system.agent import escape_attempts
from tests.system.agent.escape_pods import EscapePods
from tests.system.agent.kit import Machine, a_pod
from volcano.embedded.agent.containers.process_settings import PodNetwork

MARK = f"volcano-escape-{os.getpid()}"
AS_ROOT = "root"
SHARED_NETWORK = frozenset(("abstract sockets of the machine", "loopback of the machine"))
"""What cannot be held where pods share the machine's network; the threat model says so."""


class Stage:
    """A machine with a victim, and what the attacker is told about it."""

    def __init__(self, folder: Path, network: PodNetwork, *, as_root: bool = False) -> None:
        self.as_root = as_root
        self.canary = f"canary{secrets.token_hex(8)}"
        self.home = folder / "home"
        self.machine = Machine(folder / "data", network, ())
        self.listeners: list[socket.socket] = []
        for path in (self.home / ".ssh" / "id_rsa", self.home / ".aws" / "credentials", self.home / ".netrc",
                     folder / "data" / "secrets" / "ca.key"):  # fmt: skip
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.canary)
        os.environ |= {"HOME": str(self.home), "SERVERS_SECRET": self.canary}
        self.closed = folder / "closed"  # anyone may read the files in it, but only its owner may enter it
        (self.closed / "venv").mkdir(parents=True)
        (self.closed / "venv" / "pyvenv.cfg").touch()
        for path in (self.closed / "notes.txt", self.closed / "deep" / "notes.txt"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(self.canary)
        self.closed.chmod(0o700)

    async def start(self) -> None:
        await self.machine.server.start()
        await self.machine.start()
        if self.as_root:  # as with --pods-as root
            object.__setattr__(self.machine.runtime._settings, "default_user", None)
        env = [{"name": "PASSWORD", "value": self.canary}]
        await self.machine.create(
            {"kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "stringData": {"k": self.canary}},
            {"kind": "ConfigMap", "metadata": {"name": "c", "namespace": "default"}, "data": {"k": "plain"}},
            a_pod("victim", "sh", "-c", f"echo {self.canary} > /scratch/file; exec sleep 1000",
                  container={"env": env, "volumeMounts": [{"name": "s", "mountPath": "/s"}, {"name": "scratch", "mountPath": "/scratch"}]},
                  volumes=[{"name": "s", "secret": {"secretName": "s"}}, {"name": "scratch", "emptyDir": {}}]),
        )  # fmt: skip
        await self.machine.until_phase("victim", "Running")
        self.processes = self.machine.processes("victim")

    def listen(self) -> tuple[str, int]:
        """An abstract socket and a port of the machine."""
        abstract, port = socket.socket(socket.AF_UNIX), socket.create_server(("127.0.0.1", 0))
        abstract.bind(f"\0{MARK}")
        abstract.listen()
        self.listeners += [abstract, port]
        return MARK, port.getsockname()[1]

    def targets(self) -> dict[str, Any]:
        settings = self.machine.runtime._settings
        known = self.machine.agent.find("default", "victim")
        assert known is not None
        abstract, port = self.listen()
        host_key = Path("/etc/ssh/ssh_host_ed25519_key")
        readable = host_key.exists() and os.access(host_key, os.R_OK)
        return {
            "canary": self.canary,
            "mark": MARK,
            "agent": str(settings.directory),
            "victim": str(settings.pods / known.pod.uid),
            "memory": str(settings.memory),
            "files": [str(path / "ca.key") for path in settings.hidden],
            "hidden": [str(settings.directory), *map(str, settings.hidden), str(self.home / ".ssh")],
            "processes": [*self.processes, os.getpid(), self.machine.runtime._supervisor.pid],
            "socket": str(settings.supervisor / "supervisor.sock"),
            "packages": [path for path in sys.path if os.path.isdir(path)],
            "home": str(self.home),
            "is_default_user": settings.default_user is not None and self.machine.runtime._supervisor.tier == "root",
            "roots_files": [str(self.closed / "notes.txt"), str(self.closed / "deep" / "notes.txt")],
            "roots_home": [f"/root/{name}" for name in (".bashrc", ".profile", ".cache", ".config")],
            "named": str(self.closed / "venv"),  # so that its folder is seen in part
            "abstract": abstract,
            "port": port,
            "host_key": host_key.read_text().splitlines()[1] if readable else "",
        }

    async def attack(self) -> dict[str, str]:
        targets = self.targets()
        script = Path(escape_attempts.__file__).read_text()
        mounts = [{"name": "scratch", "mountPath": "/scratch"}, {"name": "config", "mountPath": "/config"}]
        volumes = [{"name": "scratch", "emptyDir": {}},
                   {"name": "config", "configMap": {"name": "c", "items": [{"key": "k", "path": "deep/k"}]}}]  # fmt: skip
        container = {"env": [{"name": "TARGETS", "value": json.dumps(targets)}], "volumeMounts": mounts}
        await self.machine.create(a_pod("attacker", sys.executable, "-c", script, container=container, volumes=volumes))
        await self.machine.finished("attacker")
        output = await self.machine.output("attacker")
        lines = [line for line in output.splitlines() if line.startswith("{")]
        assert lines, output[-2000:]
        results: dict[str, str] = json.loads(lines[-1])
        written = [str(folder) for folder in self.written_folders(targets) if (Path(folder) / MARK).exists()]
        for name in results:
            if name.startswith("write to ") and written:
                results[name] = f"BROKEN {written}"
        if any(not Path(f"/proc/{each}").exists() for each in targets["processes"]):
            results["kill others"] = "BROKEN"
        return results

    def written_folders(self, targets: dict[str, Any]) -> list[str]:
        system = ["/etc", "/usr/bin", "/usr/local/bin", "/opt", "/var/lib", "/"]
        return [
            *system,
            *targets["packages"],
            targets["victim"],
            f"{targets['victim']}/volumes/scratch",
            str(self.home),
        ]

    async def attack_by_volumes(self) -> dict[str, str]:
        """Volumes that would lead out; each pod must not start, or not see the canary."""
        hidden = self.machine.runtime._settings.hidden[0]
        link = ["sh", "-c", f"ln -s {hidden} /v/link; ln -s / /v/root"]
        mount = {"name": "v", "mountPath": "/v"}
        show = ["sh", "-c", "cat /out/* /out/*/*; echo end"]
        results = {}
        for name, way, volume, part in (
            ("by-link", "a symbolic link as subPath", {"emptyDir": {}}, "link"),
            ("by-root", "a symbolic link to / on the way of a subPath", {"emptyDir": {}}, f"root{hidden}"),
            ("by-host", "a hostPath of the data directory", {"hostPath": {"path": str(hidden)}}, ""),
            ("by-parent", "a hostPath above the data directory", {"hostPath": {"path": str(hidden.parent)}}, ""),
            ("by-dots", "a subPath with ..", {"emptyDir": {}}, "../../../.."),
        ):
            inner = {"name": "v", "mountPath": "/out", **({"subPath": part} if part else {})}
            first = {"name": "first", "image": "host", "command": link, "volumeMounts": [mount]}
            pod = a_pod(name, *show, container={"volumeMounts": [inner]}, volumes=[{"name": "v", **volume}])
            if "emptyDir" in volume:
                pod["spec"]["initContainers"] = [first]
            results[way] = await self.try_pod(name, pod)
        return results

    async def attack_by_pods(self) -> dict[str, str]:
        """Specs that would lead out; each pod must not start, or not see the canary."""
        hidden = self.machine.runtime._settings.hidden[0]
        others = [*self.processes, os.getpid(), self.machine.runtime._supervisor.pid]
        pods = EscapePods(self.home.parent, hidden, self.canary, others)
        results = {}
        for number, (way, spec) in enumerate(pods.ways().items()):
            pod = a_pod(f"way-{number}", "true")
            pod["spec"] |= spec
            results[way] = await self.try_pod(f"way-{number}", pod)
        return results

    async def try_pod(self, name: str, pod: dict[str, Any]) -> str:
        """Whether the pod showed the canary; one that is refused or waits for its volume did not."""
        from volcano.api.core import Event
        from volcano.api.errors import ApiError
        from volcano.api.scheme import resource_type

        try:
            await self.machine.create(pod)
        except ApiError:
            return "held"
        for _ in range(1500):
            status = (await self.machine.pod(name))["status"]
            if status.get("phase") in ("Succeeded", "Failed"):
                shown = await self.shown(name) + json.dumps(status)
                return "BROKEN" if self.canary in shown else "held"
            waiting = [each["state"].get("waiting", {}) for each in status.get("containerStatuses", ())]
            if any(each.get("reason") in ("CreateContainerConfigError", "CreateContainerError") for each in waiting):
                return "held"
            events = (await self.machine.client.list_json(resource_type(Event)))["items"]
            if any(each["reason"] == "FailedMount" and (each.get("involvedObject") or each.get("regarding", {}))["name"] == name for each in events):  # fmt: skip
                return "held"
            await asyncio.sleep(0.02)
        raise AssertionError(f"{name} neither ended nor was refused: {await self.machine.pod(name)}")

    async def shown(self, name: str) -> str:
        """What the pod printed; nothing when its container did not start."""
        try:
            return await self.machine.output(name)
        except OSError:
            return ""


async def attacked(folder: Path, network: PodNetwork, *, as_root: bool) -> tuple[str, dict[str, str]]:
    """The tier, and way → held or BROKEN with evidence."""
    stage = Stage(folder, network, as_root=as_root)
    await stage.start()
    try:
        results = await stage.attack() | await stage.attack_by_volumes() | await stage.attack_by_pods()
        return stage.machine.runtime._supervisor.tier, results
    finally:
        await stage.machine.stop()
        for each in stage.listeners:
            each.close()


if __name__ == "__main__":
    tier, table = asyncio.run(attacked(Path(sys.argv[1]), "auto", as_root=AS_ROOT in sys.argv[2:]))
    print(json.dumps({"tier": tier, "ways": table}))
