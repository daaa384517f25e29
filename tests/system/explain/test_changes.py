"""Changes that are offered: only queues that the asking person may submit to, and `--apply` asks before it acts."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stories.builders import a_job, a_queue, a_task
from tests.system.explain.asking import FOUR_CPUS, explained
from tests.system.real_system import JOBS, Up, environment, running_up, wait_until
from volcano.api.batch import Job
from volcano.api.meta import Key
from volcano.api.scheduling import Queue
from volcano.api.scheme import find_resource_type
from volcano.cli.permitted_changes import with_permitted_changes
from volcano.testing.system import VirtualSystem, on_virtual_time

pytestmark = pytest.mark.timeout(240)
VCCTL = Path(sys.executable).with_name("vcctl")
VOLCANO_JOBS = find_resource_type("batch.volcano.sh", "Job")


def test_a_queue_to_which_the_asking_person_may_not_submit_is_not_offered() -> None:
    """The API server decides who may: here it refuses because the queue was closed, elsewhere by a policy."""

    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system: VirtualSystem) -> None:
        for queue in ("small", "reserved", "open"):
            await system.apply(a_queue(queue, **({"capability": {"cpu": "1"}} if queue == "small" else {})))
        await system.until(lambda: all(system.get(Queue, name) for name in ("small", "reserved", "open")))
        await system.apply(a_job("two", a_task(replicas=2), queue="small"))
        await system.settle()
        found = await explained(system, "two")
        body = await system.client.get_json(VOLCANO_JOBS, Key("default", "two"))
        await system.patch(Queue, "reserved", {"status": {"state": "Closed"}}, subresource="status")

        permitted = await with_permitted_changes(system.client, found, body)

        offered, left = ([change.sentence for change in each.changes] for each in (found, permitted))
        assert {"use queue open", "use queue reserved"} <= set(offered)
        assert left == [sentence for sentence in offered if sentence != "use queue reserved"]
        assert [job.name for job in system.mirror.all(Job)] == ["two"]


# -- on a terminal ----------------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    options = ("--simulated-nodes", "2", "--node-cpu", "4", "--node-memory", "8Gi")
    with running_up(tmp_path_factory.mktemp("changes"), *options) as running:
        assert running.api.create(JOBS, a_job("large", a_task(replicas=2, cpu="6"))).status == 201
        yield running


def applied(up: Up, answer: str) -> tuple[int, str]:
    """`vcctl explain vcjob/large --apply 1` on a terminal of its own, and what was answered there."""
    ours, theirs = pty.openpty()
    command = [VCCTL, "explain", "vcjob/large", "--apply", "1", "--kubeconfig", str(up.data / "kubeconfig")]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment(up.folder))
    os.close(theirs)
    shown = ""
    try:
        while "[y/N]" not in shown:
            shown += os.read(ours, 4096).decode()
        os.write(ours, f"{answer}\n".encode())
        while True:
            try:
                read = os.read(ours, 4096)
            except OSError:  # the other side is closed
                break
            if not read:
                break
            shown += read.decode()
        return process.wait(60), shown
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_a_change_is_made_only_after_it_was_agreed_to(up: Up) -> None:
    def cpu() -> str:
        answer = up.api.get(f"{JOBS}/large")
        if answer.status != 200:  # it is being made anew
            return ""
        task = answer.body["spec"]["tasks"][0]
        return str(task["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"])

    for refusal in ("n", ""):
        code, shown = applied(up, refusal)
        assert (code, "nothing was changed" in shown, cpu()) == (0, True, "6"), shown

    code, shown = applied(up, "y")

    assert code == 0 and "done" in shown, shown
    assert cpu() == "4"
    wait_until(lambda: up.phase("large") == "Running", "large runs")
