"""Being attached to containers that really run: input, its end, terminals; by `kubectl attach` and `kubectl run`."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.system.agent.kit import DEADLINE, PODS, Machine, a_pod
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt

pytestmark = [
    pytest.mark.kubectl,
    needs.KUBECTL,
]
PROTOCOLS = pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])
GREETER = "while read name; do echo hello $name; done; echo nobody is left; exit 3"
SIZED = 'while [ "$(stty size)" = "0 0" ]; do sleep 0.05; done'
"""The client's size comes by a way of its own."""
RUN = ("run", "-i", "--rm", "--quiet", "--restart=Never", "--image=any")


@pytest.fixture
def machine(served_machine: Machine) -> Machine:
    return served_machine


@pytest.fixture
async def scheduling(machine: Machine):
    """Pods are bound as they come: there is no scheduler here."""

    async def bind() -> None:
        while True:
            for pod in (await machine.client.list_json(PODS))["items"]:
                if not pod["spec"].get("nodeName"):
                    await machine.bind(pod["metadata"]["name"])
            await asyncio.sleep(0.05)

    binding = asyncio.create_task(bind())
    yield
    binding.cancel()
    await asyncio.gather(binding, return_exceptions=True)


@PROTOCOLS
async def test_run_gives_a_command_its_input_and_returns_its_code(machine, kubectl, scheduling, websockets):
    kubectl = kubectl.told(KUBECTL_REMOTE_COMMAND_WEBSOCKETS=websockets)

    code, out, err = await kubectl(*RUN, "greeter", "--", "sh", "-c", GREETER, stdin=b"one\ntwo\n")

    assert (code, out.splitlines()[-3:]) == (3, ["hello one", "hello two", "nobody is left"]), err


@PROTOCOLS
async def test_much_goes_through_a_command_and_nothing_is_lost(machine, kubectl, scheduling, websockets):
    kubectl = kubectl.told(KUBECTL_REMOTE_COMMAND_WEBSOCKETS=websockets)
    text = b"".join(b"%d\n" % number for number in range(300_000))

    code, out, err = await kubectl(*RUN, "through", "--", "cat", stdin=text)

    assert (code, out) == (0, text.decode()), err


async def test_an_input_that_is_given_once_ends_with_its_client(machine, kubectl):
    container = {"stdin": True, "stdinOnce": True}
    await machine.create(a_pod("once", "sh", "-c", GREETER, container=container))
    await machine.until_phase("once", "Running")

    _, out, err = await kubectl("attach", "-i", "once", stdin=b"first\n")

    assert out == "hello first\nnobody is left\n", err
    assert (await machine.finished("once"))["status"]["phase"] == "Failed"


async def test_an_input_that_stays_open_takes_one_client_after_the_other(machine, kubectl):
    await machine.create(a_pod("open", "sh", "-c", GREETER, container={"stdin": True}))
    await machine.until_phase("open", "Running")

    for name in ("first", "second"):
        process = await kubectl.start("attach", "-i", "open")
        process.stdin.write(f"{name}\n".encode())
        async with asyncio.timeout(DEADLINE):
            assert await process.stdout.readline() == f"hello {name}\n".encode()
        process.kill()
        await process.wait()

    assert (await machine.pod("open"))["status"]["phase"] == "Running"


async def test_who_only_listens_does_not_end_the_input(machine, kubectl):
    await machine.create(a_pod("heard", "sh", "-c", GREETER, container={"stdin": True, "stdinOnce": True}))
    await machine.until_phase("heard", "Running")
    listener, speaker = await kubectl.start("attach", "heard"), await kubectl.start("attach", "-i", "heard")
    speaker.stdin.write(b"both\n")
    async with asyncio.timeout(DEADLINE):
        assert await speaker.stdout.readline() == b"hello both\n"

    listener.kill()
    await listener.wait()
    speaker.stdin.write(b"still here\n")

    async with asyncio.timeout(DEADLINE):
        assert await speaker.stdout.readline() == b"hello still here\n"
    speaker.kill()
    await speaker.wait()
    await machine.finished("heard")


AHEAD = 30_000
"""Lines that the container can write while its client does not read: fewer than fit into the holder's buffer."""


def _last_number(log: Path) -> int:
    """The number on the last complete line of the log; -1 while there is none."""
    with log.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - 256))
        complete = file.read().split(b"\n")[:-1]
    return int(complete[-1].split()[-1]) if complete else -1


async def test_output_waits_for_a_client_that_reads_slowly(machine, kubectl):
    lines = 200_000
    script = f"import sys\nsys.stdin.readline()\nfor n in range({lines}): print(n)"
    await machine.create(a_pod("fast", sys.executable, "-c", script, container={"stdin": True, "stdinOnce": True}))
    await machine.until_phase("fast", "Running")
    known = machine.agent.find("default", "fast")
    log = machine.runtime.log_file(ContainerAttempt(known.pod, "main", 0))
    process = await kubectl.start("attach", "-i", "fast")
    process.stdin.write(b"go\n")

    read = 0
    async with asyncio.timeout(DEADLINE * 2):
        while line := await process.stdout.readline():
            assert int(line) == read
            read += 1
            if read % 50_000 == 1:
                while _last_number(log) < min(lines - 1, read + AHEAD):
                    await asyncio.sleep(0.01)  # nothing is read until the container is far ahead

    assert read == lines
    await process.wait()


@PROTOCOLS
async def test_a_container_with_a_terminal_has_one_of_the_clients_size(machine, kubectl, websockets):
    kubectl = kubectl.told(KUBECTL_REMOTE_COMMAND_WEBSOCKETS=websockets)
    script = f"read go; {SIZED}; tty; stty size; echo $TERM; echo errors too >&2"
    await machine.create(a_pod("seen", "sh", "-c", script, container={"stdin": True, "stdinOnce": True, "tty": True}))
    await machine.until_phase("seen", "Running")

    shown = await kubectl.on_terminal("attach", "-it", "seen", typed=b"go\n", size=(33, 99))

    assert "/dev/pts/" in shown and "33 99" in shown and "xterm" in shown and "errors too" in shown
    assert (await machine.finished("seen"))["status"]["phase"] == "Succeeded"
    _, out, _ = await kubectl("logs", "seen")
    assert "33 99" in out


async def test_a_terminal_without_input_still_is_one(machine, kubectl):
    await machine.create(a_pod("mute", "sh", "-c", "tty; test -t 1 && echo terminal", container={"tty": True}))
    await machine.finished("mute")

    _, out, _ = await kubectl("logs", "mute")

    assert "/dev/pts/" in out and "terminal" in out


async def test_an_attached_pod_goes_on_when_its_agent_does_not(machine, kubectl):
    await machine.create(a_pod("kept", "sh", "-c", GREETER, container={"stdin": True}))
    await machine.until_phase("kept", "Running")
    await machine.crash()
    await machine.start()
    await machine.until_phase("kept", "Running")

    process = await kubectl.start("attach", "-i", "kept")
    process.stdin.write(b"again\n")

    async with asyncio.timeout(DEADLINE):
        assert await process.stdout.readline() == b"hello again\n"
    process.kill()
    await process.wait()


@PROTOCOLS
async def test_exec_works_in_both_protocols(machine, kubectl, websockets):
    kubectl = kubectl.told(KUBECTL_REMOTE_COMMAND_WEBSOCKETS=websockets)
    await machine.create(a_pod("idle", "sleep", "600"))
    await machine.until_phase("idle", "Running")

    code, out, err = await kubectl("exec", "idle", "--", "sh", "-c", "hostname; echo oops >&2; exit 3")
    assert (code, out) == (3, "idle\n") and "oops\n" in err
    code, out, _ = await kubectl("exec", "-i", "idle", "--", "cat", stdin=b"line\n" * 50_000)
    assert (code, out) == (0, "line\n" * 50_000)
    shown = await kubectl.on_terminal(
        "exec", "-it", "idle", "--", "sh", typed=f"{SIZED}; stty size; exit\n".encode(), size=(44, 88)
    )
    assert "44 88" in shown
