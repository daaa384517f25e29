"""Stock kubectl against a pod that really runs: logs, exec, cp, attach; and who may ask the node directly."""

from __future__ import annotations

import contextlib
import ssl

import aiohttp
import pytest

from tests import needs
from tests.system.agent.kit import NODE, PODS, Machine, a_pod
from volcano.api.meta import Key
from volcano.api.scheme import find_resource_type
from volcano.machinery.certificates import Authority, write_private

pytestmark = [
    pytest.mark.kubectl,
    needs.KUBECTL,
]
TICKING = "echo started; i=0; while true; do i=$((i+1)); echo tick $i; sleep 0.1; done"


@pytest.fixture
def machine(served_machine: Machine) -> Machine:
    return served_machine


@pytest.fixture
async def ticking(machine: Machine) -> None:
    await machine.create(a_pod("ticking", "sh", "-c", TICKING))
    await machine.until_phase("ticking", "Running")


async def test_logs_show_what_was_written(machine, kubectl, ticking):
    code, out, err = await kubectl("logs", "ticking")
    assert (code, err) == (0, "") and out.startswith("started\n")

    _, out, _ = await kubectl("logs", "ticking", "--tail=1")
    assert len(out.splitlines()) == 1

    _, out, _ = await kubectl("logs", "ticking", "--timestamps", "--tail=2")
    assert all(line.startswith("20") and "tick" in line for line in out.splitlines())

    _, out, _ = await kubectl("logs", "ticking", "--since=1h", "-c", "main")
    assert "started" in out

    code, _, err = await kubectl("logs", "ticking", "--previous")
    assert code != 0 and "previous terminated container" in err

    code, _, err = await kubectl("logs", "ticking", "-c", "nobody")
    assert code != 0 and "nobody" in err


async def test_following_a_log_ends_with_its_container(machine, kubectl):
    await machine.create(a_pod("short", "sh", "-c", "for i in 1 2 3 4 5; do echo $i; sleep 0.1; done"))
    await machine.until_phase("short", "Running")

    code, out, _ = await kubectl("logs", "-f", "short")

    assert code == 0 and out.split() == ["1", "2", "3", "4", "5"]


async def test_the_log_of_the_run_before_a_restart_is_kept(machine, kubectl):
    script = "echo run; sleep 0.05; exit 1"
    await machine.create(a_pod("loop", "sh", "-c", script, restartPolicy="Always"))
    await machine.until("loop", lambda pod: pod["status"].get("containerStatuses", [{}])[0].get("restartCount") == 1)

    code, out, err = await kubectl("logs", "--previous", "loop")

    assert (code, out, err) == (0, "run\n", "")


async def test_exec_gives_output_errors_input_and_the_exit_code(machine, kubectl, ticking):
    code, out, err = await kubectl("exec", "ticking", "--", "sh", "-c", "hostname; echo oops >&2; exit 3")
    assert (code, out) == (3, "ticking\n") and "oops\n" in err

    code, out, _ = await kubectl("exec", "-i", "ticking", "--", "cat", stdin=b"line\n" * 50_000)
    assert code == 0 and out == "line\n" * 50_000

    code, _, err = await kubectl("exec", "ticking", "--", "no-such-program")
    assert code != 0 and "No such file" in err


async def test_exec_on_a_terminal(machine, kubectl, ticking):
    shown = await kubectl.on_terminal("exec", "-it", "ticking", "--", "sh", typed=b"tty; echo $((6*7)); exit\n")

    assert "/dev/pts/" in shown and "42" in shown


async def test_files_are_copied_both_ways(machine, kubectl, ticking, tmp_path):
    (tmp_path / "there.txt").write_text("content")

    code, _, err = await kubectl("cp", str(tmp_path / "there.txt"), "ticking:/tmp/inside.txt")
    assert code == 0, err
    code, _, err = await kubectl("cp", "ticking:/tmp/inside.txt", str(tmp_path / "back.txt"))

    assert code == 0, err
    assert (tmp_path / "back.txt").read_text() == "content"


async def test_attach_shows_what_comes(machine, kubectl):
    await machine.create(a_pod("brief", "sh", "-c", "sleep 1; echo here; sleep 1"))
    await machine.until_phase("brief", "Running")

    code, out, err = await kubectl("attach", "brief")

    assert "here" in out, (code, out, err)


async def test_the_node_answers_only_the_api_server(machine, tmp_path):
    node = await machine.client.get_json(find_resource_type("", "Node"), Key("", NODE))
    port = node["status"]["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    await machine.create(a_pod("secret", "sh", "-c", "echo private"))
    await machine.finished("secret")
    authority = Authority(tmp_path / "pki", machine.clock.now())
    url = f"https://127.0.0.1:{port}/containerLogs/default/secret/main"

    async def ask(context: ssl.SSLContext) -> int:
        context.check_hostname = False
        async with aiohttp.ClientSession() as session:
            with contextlib.suppress(aiohttp.ClientError):
                async with session.get(url, ssl=context) as response:
                    return response.status
        return 0

    nobody = ssl.create_default_context(cafile=str(authority.certificate_path))
    assert await ask(nobody) == 0

    pair = authority.client_pair("mallory", ("developers",), machine.clock.now())
    write_private(tmp_path / "mallory.pem", pair.certificate + pair.key)
    somebody = ssl.create_default_context(cafile=str(authority.certificate_path))
    somebody.load_cert_chain(tmp_path / "mallory.pem")
    assert await ask(somebody) == 403

    server = ssl.create_default_context(cafile=str(authority.certificate_path))
    server.load_cert_chain(tmp_path / "pki" / "kubelet-client.pem")
    assert await ask(server) == 200
    url = f"https://127.0.0.1:{port}/containerLogs/default/..%2f..%2f/main"
    assert await ask(server) == 404
    await machine.client.delete(PODS, Key("default", "secret"))
