# ruff: noqa: ASYNC110
"""What a pod cannot do: see the agent's files or other pods' volumes, take down what hides them, touch the machine."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.system.agent.kit import DEADLINE, a_pod
from volcano.api.core import Event
from volcano.api.scheme import resource_type

ROOT = Path(__file__).parents[3]
ORDINARY_USER = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "env", "HOME=/tmp"]


@needs.NAMESPACES
async def test_a_pod_sees_neither_secrets_nor_the_agents_folder(machine, tmp_path):
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "kubeconfig").write_text("the keys to everything")
    agent = machine.runtime._settings.directory
    script = f"cat {secrets}/kubeconfig; ls {agent}/pods; ls {agent}/supervisor/supervisor.sock"
    await machine.create(a_pod("nosy", "sh", "-c", f"({script}) 2>/dev/null; echo done"))

    await machine.finished("nosy")

    assert await machine.output("nosy") == "done"


@needs.NAMESPACES
async def test_a_pod_cannot_look_behind_what_hides_them(machine, tmp_path):
    home = Path.home()
    hidden = home / f".volcano-test-{os.getpid()}"
    hidden.mkdir()
    (hidden / "kubeconfig").write_text("the keys to everything")
    try:
        object.__setattr__(machine.runtime._settings, "hidden", (hidden,))
        tries = [
            f"cat {hidden}/kubeconfig",
            f"umount {hidden}; cat {hidden}/kubeconfig",
            f"unshare -rm sh -c 'umount {hidden}; cat {hidden}/kubeconfig'",
            f"unshare -rm sh -c 'mount --bind {home} /mnt; cat /mnt/{hidden.name}/kubeconfig'",
            f"cat /proc/1/root/{hidden}/kubeconfig; cat /proc/1/fd/*; cat /proc/1/environ; cat /proc/1/maps",
            "mknod /tmp/disk b 8 0; mknod /tmp/disk2 b 252 0; head -c1 /tmp/disk /tmp/disk2",
            "mount -t proc proc /mnt",
        ]
        await machine.create(a_pod("digger", "sh", "-c", f"({'; '.join(tries)}) 2>/dev/null; echo done"))

        await machine.finished("digger")

        assert await machine.output("digger") == "done"
    finally:
        shutil.rmtree(hidden)


@needs.NAMESPACES
async def test_a_pod_sees_only_its_own_processes_and_temporary_files(machine):
    await machine.create(a_pod("other", "sh", "-c", "echo mine > /tmp/note; sleep 1000"))
    await machine.until_phase("other", "Running")

    await machine.create(a_pod("me", "sh", "-c", "ls /tmp; ls /proc | grep -c '^[0-9]'; ls /dev/shm"))
    await machine.finished("me")

    *files, number = (await machine.output("me")).split()
    assert "note" not in files  # the folder of this very checkout may be there, if it lies in /tmp
    count = int(number)
    assert count <= 5


@needs.NAMESPACES
async def test_a_pod_cannot_change_the_kernels_settings(machine):
    script = "echo 1 > /proc/sys/vm/drop_caches || echo kept; echo x > /sys/kernel/mm/ksm/run || echo kept; hostname evil || echo kept"
    await machine.create(a_pod("tuner", "sh", "-c", f"({script}) 2>/dev/null"))

    await machine.finished("tuner")

    assert (await machine.output("tuner")).split() == ["kept"] * 3


@pytest.mark.root
@needs.ROOT
@needs.SETPRIV
def test_an_ordinary_user_gets_the_same_from_user_namespaces(tmp_path):
    python = next((path for path in (sys.executable, "/usr/bin/python3") if _works(ORDINARY_USER, path)), None)
    if python is None:
        pytest.skip(
            needs.reason("no Python that an ordinary user may run sees this package", "install into /opt or /usr")
        )

    told = subprocess.run(
        [*ORDINARY_USER, python, "-c", STORY],
        capture_output=True,
        text=True,
        timeout=100,
        env=_environment(),
        check=False,
    )

    assert told.stdout.split() == ["user", "0", "hello", "4"], told.stderr[-2000:]


STORY = """
import asyncio, os, tempfile
from pathlib import Path
from tests.system.agent.kit import Machine, a_pod
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt

async def main():
    machine = Machine(Path(tempfile.mkdtemp()), "auto", ())
    await machine.server.start()
    await machine.start()
    print(machine.runtime._supervisor.tier)
    mount = {"volumeMounts": [{"name": "v", "mountPath": "/brand-new"}]}
    volumes = [{"name": "v", "emptyDir": {}}]
    await machine.create(a_pod("hello", "sh", "-c", "id -u; touch /brand-new/x && hostname", container=mount, volumes=volumes))
    await machine.finished("hello")
    print(await machine.output("hello"))
    await machine.create(a_pod("sleeper", "sleep", "1000"))
    await machine.until_phase("sleeper", "Running")
    known, nothing = machine.agent.find("default", "sleeper"), os.open("/dev/null", os.O_RDWR)
    command = ["sh", "-c", "exit 4"]
    print(await machine.runtime.execute(ContainerAttempt(known.pod, "main", 0), command, standard=[nothing] * 3))
    await machine.stop()

asyncio.run(main())
"""


def _environment() -> dict[str, str]:
    packages = [path for path in sys.path if path.endswith("site-packages")]
    paths = [str(ROOT / "src"), str(ROOT), *packages]
    return {**os.environ, "PYTHONPATH": ":".join(paths), "PYTHONDONTWRITEBYTECODE": "1"}


def _works(as_user: list[str], python: str) -> bool:
    check = (
        "import sys, msgspec, volcano.embedded.agent.agent, tests.system.agent.kit; assert sys.version_info >= (3, 11)"
    )
    if not os.path.exists(python):
        return False
    tried = subprocess.run([*as_user, python, "-c", check], capture_output=True, env=_environment(), check=False)
    return tried.returncode == 0


@pytest.mark.parametrize("folder", ["secrets", "agent", "."])
async def test_a_volume_of_the_data_directory_is_refused_with_an_event(machine, tmp_path, folder):
    (tmp_path / "secrets").mkdir(exist_ok=True)
    (tmp_path / "secrets" / "ca.key").write_text("the keys to everything")
    path = str(tmp_path / folder) if folder != "." else str(tmp_path)
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    volumes = [{"name": "v", "hostPath": {"path": path}}]

    await machine.create(
        a_pod("thief", "sh", "-c", "cat /v/ca.key /v/secrets/ca.key", container=mounts, volumes=volumes)
    )

    async with asyncio.timeout(DEADLINE):
        while not (messages := await failed_mounts(machine)):
            await asyncio.sleep(0.02)
    assert f"hostPath {path!r} is refused" in messages[0]
    assert (await machine.pod("thief"))["status"].get("phase", "Pending") == "Pending"


async def failed_mounts(machine) -> list[str]:
    events = (await machine.client.list_json(resource_type(Event)))["items"]
    return [event.get("message") or event.get("note", "") for event in events if event["reason"] == "FailedMount"]


@needs.NAMESPACES
@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can run pods as another user")
async def test_pods_that_state_no_user_run_as_the_default_one_and_can_work(machine):
    """As with `volcano up --pods-as nobody`: volumes and temporary files can be written; root must be stated."""
    object.__setattr__(machine.runtime._settings, "default_user", (65534, 65534))
    volume = {"volumes": [{"name": "v", "emptyDir": {}}]}
    mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
    script = "id -u; id -g; for f in /v /tmp /dev/shm; do echo x > $f/mine && cat $f/mine; done; cat /etc/shadow; true"
    await machine.create(
        a_pod("plain", "sh", "-c", f"({script}) 2>/dev/null", container=mounts, **volume),
        a_pod("stated", "sh", "-c", "id -u", securityContext={"runAsUser": 0}),
    )

    await machine.finished("plain")
    await machine.finished("stated")

    assert (await machine.output("plain")).split() == ["65534", "65534", "x", "x", "x"]
    assert await machine.output("stated") == "0"
