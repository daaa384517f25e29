# ruff: noqa: ASYNC110, ASYNC220, ASYNC221

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests import needs
from tests.system.agent.kit import PODS, Machine, a_pod
from volcano.api.meta import Key
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt
from volcano.embedded.agent.containers.images import Image
from volcano.embedded.agent.processes.container_attach import HEADER, STDIN, STDOUT
from volcano.embedded.agent.runtime.process_runtime import open_files_limit
from volcano.embedded.agent.streams.attach_session import connect_to


@pytest.fixture
def images(tmp_path: Path) -> tuple[Image, ...]:
    return (
        Image(match="greeter", command=("sh", "-c", "echo $GREETING $0"), args=("you",), env={"GREETING": "hello"}),
        Image(match="tiny*", root=str(tmp_path / "tiny"), working_dir="/work"),
    )


async def test_an_image_may_stand_for_a_command(machine):
    pod = a_pod("greeter", container={"image": "docker.io/library/greeter:1.0"})
    del pod["spec"]["containers"][0]["command"]
    await machine.create(pod)

    await machine.until_phase("greeter", "Succeeded")

    assert await machine.output("greeter") == "hello you"


@needs.NAMESPACES
@needs.LDD
async def test_an_image_may_stand_for_a_root_folder_that_stays_as_it_is(machine, tmp_path):
    root = tmp_path / "tiny"
    _make_root(root, "sh", "ls", "cat", "touch", "mkdir")
    script = "pwd; ls /; cat /etc/hostname; mkdir -p /data/new && touch /data/new/file /work/file; ls /volume"
    container = {"image": "tiny:latest", "volumeMounts": [{"name": "v", "mountPath": "/volume"}]}
    volumes = [{"name": "v", "downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}}]
    await machine.create(a_pod("inside", "sh", "-c", script, container=container, volumes=volumes))

    await machine.until_phase("inside", "Succeeded")

    where, *entries = (await machine.output("inside")).split()
    assert where == "/work" and "home" not in entries and "volume" in entries
    assert entries[-2:] == ["inside", "n"]
    assert not (root / "data").exists() and not (root / "work" / "file").exists()


def _make_root(root: Path, *programs: str) -> None:
    for folder in ("bin", "work"):  # proc, sys, dev and tmp are made, as an image of one program lacks them
        (root / folder).mkdir(parents=True)
    for program in programs:
        path = shutil.which(program)
        assert path is not None
        shutil.copy(path, root / "bin" / program)
        told = subprocess.run(["ldd", path], capture_output=True, text=True, check=True).stdout
        for word in told.split():
            if word.startswith("/"):
                (root / Path(word).relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(word, root / Path(word).relative_to("/"))


@pytest.fixture
async def bare_machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """Its supervisor finds that it may make no namespaces."""
    directory = tmp_path / "agent" / "supervisor"
    start = (
        "import sys, volcano.embedded.agent.processes.supervisor as s; s._tier = lambda: 'none'; s.main(sys.argv[1])"
    )
    supervisor = subprocess.Popen([sys.executable, "-c", start, str(directory)])
    async with asyncio.timeout(20):
        while not (directory / "supervisor.sock").exists():
            await asyncio.sleep(0.01)
    given = Machine(tmp_path, "auto", ())
    await given.server.start()
    await given.start()
    yield given
    await given.stop()
    supervisor.wait(20)


async def test_without_namespaces_pods_are_plain_processes_that_still_end_whole(bare_machine, tmp_path):
    machine, beat = bare_machine, tmp_path / "beat"
    assert machine.runtime._supervisor.tier == "none"
    script = f"trap '' TERM; setsid sh -c 'while true; do date > {beat}; sleep 0.05; done' & echo up; sleep 1000"
    await machine.create(a_pod("plain", "sh", "-c", script))
    await machine.until_phase("plain", "Running")
    async with asyncio.timeout(20):
        while not beat.exists():
            await asyncio.sleep(0.01)
    processes = machine.processes("plain")
    assert len(processes) > 2, "the container's shell and the loop in a session of its own"

    await machine.client.delete(PODS, Key("default", "plain"), {"gracePeriodSeconds": 1})

    await machine.until_gone("plain")
    for pid in processes:
        await machine.until_no_process(pid)


async def test_without_namespaces_commands_have_the_paths_of_the_volumes_folders(bare_machine):
    container = {
        "volumeMounts": [{"name": "v", "mountPath": "/data"}],
        "env": [{"name": "WHERE", "value": "/data/x"}],
    }
    script = 'echo hello > /data/x && cat "$WHERE" && test ! -e /"data"/x'
    pod = a_pod("hopeful", "sh", "-c", script, container=container, volumes=[{"name": "v", "emptyDir": {}}])
    await bare_machine.create(pod, a_pod("modest", "sh", "-c", "exit 3"))

    await bare_machine.until_phase("modest", "Failed")
    await bare_machine.finished("hopeful")

    assert (await bare_machine.output("hopeful")).split() == ["hello"]


async def test_without_namespaces_terminals_and_input_are_there_all_the_same(bare_machine):
    await bare_machine.create(a_pod("seen", "sh", "-c", "tty; test -t 0 && echo terminal", container={"tty": True}))
    await bare_machine.create(a_pod("patient", "cat", container={"stdin": True}))

    await bare_machine.finished("seen")
    assert "terminal" in await bare_machine.output("seen")
    pod = await bare_machine.until_phase("patient", "Running")
    folder = bare_machine.directory / "agent" / "pods" / pod["metadata"]["uid"] / "main.0"
    reader, writer, inlet = await connect_to(folder)
    await asyncio.get_running_loop().sock_sendall(inlet, HEADER.pack(STDIN, 3) + b"hi\n")
    async with asyncio.timeout(20):
        assert await reader.readexactly(HEADER.size + 3) == HEADER.pack(STDOUT, 3) + b"hi\n"
    writer.close()
    inlet.close()


@needs.NAMESPACES
async def test_a_busybox_image_has_programs_that_the_machine_may_lack(machine):
    container, name = {"image": "busybox:1.36"}, "192-0-2-7.default.pod.cluster.local"
    await machine.create(a_pod("box", "sh", "-c", f"nslookup {name}; wget 2>&1; nc 2>&1; seq 2", container=container))

    await machine.finished("box")

    output = await machine.output("box")
    assert "192.0.2.7" in output and "not found" not in output
    assert output.splitlines()[-2:] == ["1", "2"]


@needs.NAMESPACES
async def test_a_virtual_environment_below_tmp_is_seen_where_the_command_names_it(machine, tmp_path):
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (venv / "bin" / "hello").write_text("#!/bin/sh\necho hello\n")
    (venv / "bin" / "hello").chmod(0o755)
    machine.images = (Image(match="mapped", venv=str(venv)),)
    await machine.crash()
    await machine.start()

    await machine.create(a_pod("named", str(venv / "bin" / "hello")))
    await machine.create(a_pod("mapped", "sh", "-c", "hello; echo $VIRTUAL_ENV", container={"image": "mapped:1"}))

    await machine.until_phase("named", "Succeeded")
    await machine.until_phase("mapped", "Succeeded")
    assert await machine.output("named") == "hello"
    assert await machine.output("mapped") == f"hello\n{venv}"


async def test_a_missing_program_of_a_well_known_image_names_the_command_that_installs_it(machine):
    await machine.create(a_pod("ray", "raylet-that-is-missing", container={"image": "rayproject/ray:2.9.0"}))

    pod = await machine.finished("ray")

    message = pod["status"]["containerStatuses"][0]["state"]["terminated"]["message"]
    assert "pip install 'ray[default]'" in message


async def test_a_pod_may_open_as_many_files_as_the_machine_allows_and_the_node_says_how_many(machine):
    await machine.create(a_pod("many", "sh", "-c", "ulimit -Sn; ulimit -Hn; ulimit -n 65536 && echo enough for Ray"))

    await machine.finished("many")

    soft, hard, *enough = (await machine.output("many")).splitlines()
    allowed = open_files_limit()
    assert int(soft) == int(hard) == allowed
    assert ("enough for Ray" in enough) == (allowed >= 65536)
    assert f"at most {allowed} open files" in machine.runtime.annotations["agent.volcano.sh/limits"]


APPTAINER_STAND_IN = """#!/bin/sh
# Stands in for Apptainer, which is not installed where the tests run: shows its arguments, runs the command outside
# of any image.
echo "$@"
while [ "$1" != docker://alpine ]; do shift; done
shift
exec "$@"
"""


@needs.NAMESPACES
async def test_an_image_for_apptainer_runs_through_its_program_with_volumes(machine, tmp_path_factory):
    folder = tmp_path_factory.mktemp("programs")
    folder.chmod(0o755)  # pods are not root
    stand_in = folder / "apptainer"
    stand_in.write_text(APPTAINER_STAND_IN)
    stand_in.chmod(0o755)
    machine.apptainer = "/opt-apptainer/apptainer"
    await machine.crash()
    await machine.start()
    mounts = [{"name": "d", "mountPath": "/data"}, {"name": "a", "mountPath": "/opt-apptainer"}]
    volumes = [{"name": "d", "emptyDir": {}}, {"name": "a", "hostPath": {"path": str(folder)}}]
    container = {"image": "docker://alpine", "volumeMounts": mounts, "workingDir": "/data"}
    await machine.create(a_pod("sif", "sh", "-c", "echo ran", container=container, volumes=volumes))

    await machine.finished("sif")

    first, last = (await machine.output("sif")).splitlines()
    assert first.startswith("--quiet exec --userns --no-home --writable-tmpfs --bind /etc/hosts,") and last == "ran"
    assert ",/data,/opt-apptainer" in first and "--pwd /data docker://alpine sh -c echo ran" in first


@needs.NAMESPACES
@needs.LDD
@needs.APPTAINER
@pytest.mark.parametrize("pod_network", ["host", pytest.param("isolated", marks=needs.NETWORK_NAMESPACES)])
async def test_a_sif_image_runs_in_apptainer_with_volumes_and_further_commands(machine, tmp_path_factory):
    program = shutil.which("apptainer") or shutil.which("singularity")
    assert program is not None
    folder = tmp_path_factory.mktemp("image")
    folder.chmod(0o755)  # pods are not root
    _make_root(folder / "root", "sh", "cat", "sleep", "hostname")
    for name in ("tmp", "var/tmp", "data", "etc", "proc", "sys", "dev", "root"):
        (folder / "root" / name).mkdir(parents=True, exist_ok=True)
    (folder / "root" / "etc" / "of-the-image").write_text("from the image\n")
    for name in ("hosts", "hostname", "resolv.conf", "passwd", "group"):
        (folder / "root" / "etc" / name).touch()
    image = folder / "shell.sif"
    subprocess.run([program, "build", str(image), str(folder / "root")], check=True, capture_output=True, timeout=120)
    machine.apptainer = program
    await machine.crash()
    await machine.start()
    script = "cat /etc/of-the-image; hostname; echo kept > /data/file; cat /data/file; echo $GIVEN; while true; do sleep 1; done"
    mounts = [{"name": "d", "mountPath": "/data"}, {"name": "i", "mountPath": str(folder)}]
    volumes = [{"name": "d", "emptyDir": {}}, {"name": "i", "hostPath": {"path": str(folder)}}]
    container = {"image": str(image), "volumeMounts": mounts, "env": [{"name": "GIVEN", "value": "a variable"}]}
    await machine.create(a_pod("sif", "sh", "-c", script, container=container, volumes=volumes))

    await machine.until_phase("sif", "Running")
    async with asyncio.timeout(60):
        while "a variable" not in (output := await machine.output("sif")):
            await asyncio.sleep(0.1)

    assert output.splitlines()[-4:] == ["from the image", "sif", "kept", "a variable"]
    known = machine.agent.find("default", "sif")
    assert known is not None
    run = ContainerAttempt(known.pod, "main", 0)
    with (folder / "said").open("wb") as said, open("/dev/null", "rb") as nothing:
        descriptors = [nothing.fileno(), said.fileno(), said.fileno()]
        code = await machine.runtime._runs.execute(
            run, ["cat", "/etc/of-the-image", "/data/file"], standard=descriptors
        )
    assert (code, (folder / "said").read_text().splitlines()[-2:]) == (0, ["from the image", "kept"])


async def test_without_apptainer_its_images_say_what_to_install(machine):
    await machine.create(a_pod("sif", "true", container={"image": "/images/a.sif"}))

    pod = await machine.until("sif", lambda pod: "waiting" in str(pod["status"].get("containerStatuses")))

    assert "apptainer.org" in str(pod["status"]["containerStatuses"])
