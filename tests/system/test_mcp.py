"""`volcano mcp` beside a running system, asked by the client of the mcp package over standard input and output."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.needs import reason
from tests.system.real_system import JOBS, VOLCANO, Up, environment, running_up, wait_until

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None, reason=reason("the package mcp is not installed", "make install")
)
TOOLS = ["list_jobs", "explain", "queue_tree", "usage", "past_jobs", "job_history", "dry_run"]
ACCOUNT = "/api/v1/namespaces/default/serviceaccounts"


def a_job(name: str, *, cpu: str = "100m", queue: str = "default") -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": cpu}}}
    annotations = {"simulation.volcano.sh/duration": "0.2s"}
    template = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    tasks = [{"name": "w", "replicas": 2, "template": template}]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name},
        "spec": {"queue": queue, "tasks": tasks},
    }  # fmt: skip


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with running_up(tmp_path_factory.mktemp("mcp"), "--simulated-nodes", "2", "--dashboard=off") as up:
        assert up.api.create(JOBS, a_job("done")).status == 201
        assert up.api.create(JOBS, a_job("waits", cpu="4000")).status == 201
        up.until_phase("done", "Completed")
        wait_until(lambda: "Completed" in past_phases(up), "the history has its end")
        yield up


def past_phases(up: Up) -> list[str]:
    found = up.api.get("/volcano/history/v1/jobs", name="done")
    return [job["phase"] for job in found.body.get("jobs", [])]


class Assistant:
    """Calls a tool: the answer, or the text of the error."""

    def __init__(self, client: Any) -> None:
        self.client = client

    async def ask(self, tool: str, **arguments: Any) -> Any:
        found = await self.client.call_tool(tool, arguments)
        assert not found.is_error, found.content
        return found.structured_content or msgspec.json.decode(found.content[0].text)

    async def refusal(self, tool: str, **arguments: Any) -> str:
        found = await self.client.call_tool(tool, arguments)
        assert found.is_error, found.structured_content
        return str(found.content[0].text)


def server_of(folder: Path, kubeconfig: Path) -> Any:
    from mcp import StdioServerParameters

    words = [*VOLCANO[1:], "mcp", "--kubeconfig", str(kubeconfig)]
    return StdioServerParameters(command=VOLCANO[0], args=words, env=environment(folder))


async def test_every_tool_answers_and_says_that_it_only_reads(system: Up, tmp_path: Path):
    from mcp import Client

    async with Client(server_of(tmp_path, system.data / "kubeconfig")) as client:
        tools = (await client.list_tools()).tools
        assistant = Assistant(client)
        jobs = await assistant.ask("list_jobs", phase="Pending")
        why = await assistant.ask("explain", name="waits")
        tree = await assistant.ask("queue_tree")
        usage = await assistant.ask("usage", by="user")
        past = await assistant.ask("past_jobs", state="ended")
        story = await assistant.ask("job_history", name="done")
        fits = await assistant.ask("dry_run", manifest=msgspec.json.encode(a_job("trial")).decode())
        too_large = await assistant.ask("dry_run", manifest=yaml.safe_dump(a_job("trial", cpu="4000")))

    assert [tool.name for tool in tools] == TOOLS
    assert all(tool.annotations.read_only_hint and tool.description for tool in tools)
    assert {"type": "integer", "minimum": 1, "maximum": 200}.items() <= tools[0].input_schema["properties"][
        "limit"
    ].items()
    assert (jobs["total"], [job["name"] for job in jobs["jobs"]]) == (1, ["waits"])
    assert "cpu" in why["text"]
    assert any(line.startswith("root") for line in tree["tree"]) and tree["isWhole"]
    assert [row["jobs"] for row in usage["rows"]] == [2]
    assert [job["name"] for job in past["jobs"]] == ["done"]
    assert len(story["pods"]) == 2
    assert len([pod for pod in fits["pods"].values() if pod.get("node")]) == 2
    assert not any(pod.get("node") for pod in too_large.get("pods", {}).values())
    assert system.api.get(JOBS).body["items"].__len__() == 2, "a dry run submits nothing"


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("list_jobs", {"limit": 0}, "limit"),
        ("list_jobs", {"phase": "Sleeping"}, "phase"),
        ("explain", {"name": "absent"}, '"absent" not found'),
        ("explain", {"name": "x", "kind": "moon"}, "cannot be explained; known:"),
        ("usage", {"by": "moon"}, "is not one of day, queue, user, namespace"),
        ("usage", {"since": "yesterday-ish"}, "is not a time: write 2026-01-31"),
        ("job_history", {"name": "absent"}, "the history has no job absent"),
        ("dry_run", {"manifest": "kind: Pod"}, "manifest: must be one object of apiVersion batch.volcano.sh/v1alpha1"),
        ("dry_run", {"manifest": "a: [1"}, "manifest: is not YAML"),
        ("dry_run", {"manifest": ""}, "manifest"),
    ],
)
async def test_an_error_says_what_to_ask_instead(
    system: Up, tmp_path: Path, tool: str, arguments: dict[str, Any], words: str
):
    """Within one process: how the protocol is spoken is the other tests' matter."""
    from mcp import Client

    from volcano.app.mcp_server import mcp_server
    from volcano.cli.cluster_reads import ClusterReads

    async with Client(mcp_server(ClusterReads(str(system.data / "kubeconfig")))) as client:
        assert words in await Assistant(client).refusal(tool, **arguments)


async def test_the_rights_are_those_of_the_kubeconfig(system: Up, tmp_path: Path):
    from mcp import Client

    assert system.api.create(ACCOUNT, {"metadata": {"name": "visitor"}}).status in (201, 409)
    token = system.api.create(f"{ACCOUNT}/visitor/token", {"spec": {}}).body["status"]["token"]
    config = yaml.safe_load((system.data / "kubeconfig").read_text())
    config["users"] = [{"name": config["contexts"][0]["context"]["user"], "user": {"token": token}}]
    kubeconfig = tmp_path / "visitor"
    kubeconfig.write_text(yaml.safe_dump(config))

    async with Client(server_of(tmp_path, kubeconfig)) as client:
        assistant = Assistant(client)
        listed = await assistant.refusal("list_jobs")
        explained = await assistant.refusal("explain", name="waits")
        past = await assistant.ask("past_jobs")

    assert 'User "system:serviceaccount:default:visitor" cannot list resource "jobs"' in listed
    assert "cannot get resource" in explained
    assert (past["total"], past["jobs"]) == (0, [])


async def test_without_a_system_the_error_says_how_to_start_one(tmp_path: Path):
    from mcp import Client

    async with Client(server_of(tmp_path, tmp_path / "absent")) as client:
        assert "absent" in await Assistant(client).refusal("list_jobs")
