# ruff: noqa: ASYNC110
"""The agent dies, the supervisor dies: what runs goes on, what ended is told once, what was lost is said."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from datetime import timedelta

from tests.system.agent.kit import DEADLINE, PODS, a_pod, terminated
from volcano.api.meta import Key

COUNTING = "echo run >> /marks/$HOSTNAME; until test -e /marks/go; do sleep 0.02; done; exit 5"


def counting(name: str, marks, **spec):
    container = {"volumeMounts": [{"name": "marks", "mountPath": "/marks"}]}
    volumes = [{"name": "marks", "hostPath": {"path": str(marks)}}]
    return a_pod(name, "sh", "-c", COUNTING, container=container, volumes=volumes, **spec)


async def test_pods_go_on_without_their_agent_and_are_adopted(machine, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    marks.chmod(0o777)  # pods are not root
    await machine.create(counting("one", marks), counting("two", marks))
    await machine.until_phase("one", "Running")
    await machine.until_phase("two", "Running")
    supervisor = machine.runtime._supervisor.pid

    await machine.crash()
    (marks / "go").touch()
    await machine.start()

    assert machine.runtime._supervisor.pid == supervisor
    for name in ("one", "two"):
        pod = await machine.finished(name)
        assert terminated(pod)["exitCode"] == 5
        assert (marks / name).read_text() == "run\n"


async def test_a_pod_that_still_runs_keeps_running_with_the_next_agent(machine, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    marks.chmod(0o777)  # pods are not root
    await machine.create(counting("one", marks))
    before = await machine.until_phase("one", "Running")

    await machine.crash()
    await machine.start()
    (marks / "go").touch()
    pod = await machine.finished("one")

    assert (marks / "one").read_text() == "run\n"
    assert terminated(pod)["startedAt"] == before["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]


async def test_a_pod_deleted_while_the_agent_was_away_is_ended(machine, tmp_path):
    await machine.create(a_pod("orphan", "sleep", "1000"))
    await machine.until_phase("orphan", "Running")
    pid = next(iter(machine.runtime._runs.records.values()))["pid"]
    await machine.crash()
    await machine.client.delete(PODS, Key("default", "orphan"), {"gracePeriodSeconds": 0})
    await machine.start()

    await machine.until_no_process(pid)


async def test_when_the_supervisor_dies_its_pods_end_and_are_reported_lost(machine, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    marks.chmod(0o777)  # pods are not root
    await machine.create(counting("victim", marks))
    await machine.until_phase("victim", "Running")
    pid = next(iter(machine.runtime._runs.records.values()))["pid"]

    os.kill(machine.runtime._supervisor.pid, signal.SIGKILL)

    pod = await machine.finished("victim")
    assert pod["status"]["phase"] == "Failed"
    assert (terminated(pod)["exitCode"], terminated(pod)["reason"]) == (137, "ContainerStatusUnknown")
    await machine.until_no_process(pid)


def groups_of(machine) -> set[str]:
    """The control groups of the agent's containers; none where groups cannot be made."""
    parents = machine.runtime._runs.cgroups._parents.values()
    return {group.name for parent in parents if parent.is_dir() for group in parent.iterdir() if group.is_dir()}


async def test_what_a_killed_agent_and_supervisor_leave_is_removed_at_the_next_start(machine, tmp_path):
    limited = {"resources": {"limits": {"cpu": "1", "memory": "64Mi"}}}
    await machine.create(a_pod("kept", "sleep", "1000", container=limited))
    await machine.create(a_pod("gone", "sleep", "1000", container=limited))
    uids = {name: (await machine.until_phase(name, "Running"))["metadata"]["uid"] for name in ("kept", "gone")}
    pids = [record["pid"] for record in machine.runtime._runs.records.values()]
    agent = tmp_path / "agent"
    logs_only = agent / "logs" / "default_forgotten_5b0c9fd0"
    supervisor = machine.runtime._supervisor.pid

    await machine.crash()
    os.kill(supervisor, signal.SIGKILL)
    await machine.client.delete(PODS, Key("default", "gone"), {"gracePeriodSeconds": 0})
    logs_only.mkdir()
    for pid in pids:
        await machine.until_no_process(pid)
    await machine.start()
    await machine.finished("kept")

    kept = f"default_kept_{uids['kept']}"
    left: dict[str, set[str]] = {"before the first look": set()}
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DEADLINE):
            while any(left.values()) or "groups" not in left:
                left = {
                    "groups": groups_of(machine),
                    "folders": names_in(agent / "pods"),
                    "in memory": names_in(machine.runtime._settings.memory),
                    "logs": names_in(agent / "logs") - {kept},
                }
                await asyncio.sleep(0.02)
    assert not any(left.values()), left
    assert names_in(agent / "logs") == {kept}


def names_in(folder) -> set[str]:
    return {each.name for each in folder.iterdir()}


async def test_a_lost_pod_that_restarts_is_started_again(machine, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    marks.chmod(0o777)  # pods are not root
    await machine.create(counting("phoenix", marks, restartPolicy="OnFailure"))
    await machine.until_phase("phoenix", "Running")

    os.kill(machine.runtime._supervisor.pid, signal.SIGKILL)

    pod = await machine.until(
        "phoenix",
        lambda pod: (
            pod["status"]["containerStatuses"][0]["restartCount"] == 1
            and "running" in pod["status"]["containerStatuses"][0]["state"]
        ),
    )
    assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["reason"] == "ContainerStatusUnknown"


async def test_a_node_that_is_switched_off_ends_its_pods_and_says_so(machine, tmp_path):
    await machine.create(a_pod("worker", "sleep", "1000"), a_pod("server", "sleep", "1000", restartPolicy="Always"))
    await machine.until_phase("worker", "Running")
    await machine.until_phase("server", "Running")

    await machine.agent.shut_down(timedelta(seconds=5))

    worker, server = await machine.pod("worker"), await machine.pod("server")
    assert (worker["status"]["phase"], worker["status"]["reason"]) == ("Failed", "Terminated")
    assert server["status"]["phase"] == "Running"
    await machine.crash()
    await machine.start()
    await machine.until(
        "server",
        lambda pod: (
            pod["status"]["containerStatuses"][0]["restartCount"] == 1
            and "running" in pod["status"]["containerStatuses"][0]["state"]
        ),
    )
