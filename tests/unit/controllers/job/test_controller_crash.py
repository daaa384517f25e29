"""A controller that is killed after any write and started again ends where it would have ended without.

Each story is lived once undisturbed, and then once for every write of it: killed right after that write, started again
with nothing but the stored objects. Pods are compared by UID, which counts how often a name was made: none twice, none
missing.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from volcano.api.batch import Job
from volcano.testing.pure_jobs import JobWorld, a_command, a_job, a_task, policy
from volcano.testing.pure_world import Killed

Event = Callable[[JobWorld], Any]
Story = tuple[dict[str, Any], list[Event]]
KEY = ["--ssh-private-key=secret", "--ssh-public-key=public"]


def wait(seconds: float) -> Event:
    def pass_time(world: JobWorld) -> None:
        world.deadline = world.now + timedelta(seconds=seconds)  # type: ignore[attr-defined]
        world.wait(seconds)

    return pass_time


def command(action: str, name: str) -> Event:
    def ask(world: JobWorld) -> None:
        world.put(a_command(action, name=name))
        world.settle()

    return ask


enqueue: Event = lambda world: world.enqueue()  # noqa: E731
run: Event = lambda world: world.run()  # noqa: E731
reap: Event = lambda world: world.reap()  # noqa: E731
start = [lambda world: world.settle(), enqueue, run, wait(2)]
again = [reap, enqueue, run, wait(2)]
succeed: Event = lambda world: world.succeed()  # noqa: E731


def fail(*names: str) -> Event:
    return lambda world: world.fail(*names)


def evict(*names: str) -> Event:
    return lambda world: world.evict(*names)


def scale(**replicas: int) -> Event:
    return lambda world: world.scale(**replicas)


PLUGINS = {"svc": [], "ssh": KEY, "env": []}
VOLUMES = [
    {"mountPath": "/d", "volumeClaim": {"accessModes": ["ReadWriteOnce"]}},
    {"mountPath": "/e", "volumeClaim": {}},
]
STORIES: dict[str, Story] = {
    "a job with everything completes": (
        a_job(a_task(replicas=3), plugins=PLUGINS, volumes=VOLUMES),
        [*start, succeed, wait(2)],
    ),
    "too few pods succeed": (a_job(), [*start, fail("j-worker-0"), succeed, wait(2)]),
    "enough pods succeed": (
        a_job(a_task(replicas=4), minSuccess=2),
        [*start, lambda w: w.succeed("j-worker-0", "j-worker-2"), reap, wait(2)],
    ),
    "a failure restarts the job": (
        a_job(a_task(replicas=3), plugins=PLUGINS, policies=[policy("RestartJob", "PodFailed")]),
        [*start, fail("j-worker-1"), *again, succeed, wait(2)],
    ),
    "failures use up all retries": (
        a_job(policies=[policy("RestartJob", "PodFailed")], maxRetry=2),
        [*start, fail("j-worker-1"), *again, fail("j-worker-0"), *again],
    ),
    "an eviction restarts the job": (
        a_job(a_task(replicas=3), policies=[policy("RestartJob", "PodEvicted")]),
        [*start, evict("j-worker-1"), *again],
    ),
    "an eviction restarts a task": (
        a_job(a_task("a", 3), a_task("b", 2), policies=[policy("RestartTask", "PodEvicted")]),
        [*start, evict("j-a-1"), *again],
    ),
    "a failure restarts a task": (
        a_job(a_task("a", 3), a_task("b", 2), plugins=PLUGINS, policies=[policy("RestartTask", "PodFailed")]),
        [*start, fail("j-a-1"), *again],
    ),
    "failures restart pods": (
        a_job(a_task(replicas=4), policies=[policy("RestartPod", "PodFailed")], maxRetry=5),
        [*start, fail("j-worker-1", "j-worker-2"), *again, fail("j-worker-0"), *again],
    ),
    "a failure restarts a partition": (
        a_job(
            a_task(replicas=4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2}),
            policies=[policy("RestartPartition", "PodFailed", "PodEvicted")],
        ),
        [*start, fail("j-worker-1"), *again, evict("j-worker-3"), *again],
    ),
    "a task completes the job": (
        a_job(a_task("a", 1), a_task("b", 2), plugins=PLUGINS, policies=[policy("CompleteJob", "TaskCompleted")]),
        [*start, lambda w: w.succeed("j-a-0"), reap, wait(2)],
    ),
    "a failure terminates the job": (
        a_job(a_task(replicas=3), policies=[policy("TerminateJob", "PodFailed")]),
        [*start, fail("j-worker-1"), reap, wait(2)],
    ),
    "suspended and resumed": (
        a_job(a_task(replicas=3), plugins=PLUGINS),
        [
            *start,
            lambda w: w.succeed("j-worker-0"),
            command("AbortJob", "c1"),
            reap,
            wait(2),
            command("ResumeJob", "c2"),
            *again,
            succeed,
        ],
    ),
    "suspended while pending": (a_job(), [lambda w: w.settle(), command("AbortJob", "c1"), wait(2)]),
    "restarted by command twice": (
        a_job(maxRetry=5),
        [*start, command("RestartJob", "c1"), *again, command("RestartJob", "c2"), *again],
    ),
    "two commands at once": (
        a_job(),
        [
            *start,
            lambda w: (w.put(a_command("AbortJob", name="c1")), w.put(a_command("ResumeJob", name="c2")), w.settle()),
            *again,
        ],
    ),
    "scaled up and down": (
        a_job(a_task(replicas=2, minAvailable=1), plugins=PLUGINS, minAvailable=1),
        [*start, scale(worker=4), run, wait(2), scale(worker=1), reap, wait(2), scale(worker=0), reap, wait(2)],
    ),
    "an eviction is answered late": (
        a_job(a_task(replicas=2), minAvailable=1, policies=[policy("RestartJob", "PodEvicted", timeout="10s")]),
        [*start, evict("j-worker-0"), wait(12), *again],
    ),
    "a task waits for another": (
        a_job(a_task("a", 1), a_task("b", 2, dependsOn={"name": ["a"]}), minAvailable=1),
        [lambda w: w.settle(), enqueue, lambda w: w.run("j-a-0"), run, wait(2), succeed, wait(2)],
    ),
    "the queue is missing": (a_job(queue="nowhere"), [wait(400)]),
}


def live(story: Story, *, stop_after: int | None = None, lives: int | None = None) -> JobWorld:
    """Live a story, killed after so many writes; with `lives`, each process is killed after that many.

    Eight are enough for the longest chain that has to be done at one go: a job's plugin objects, PodGroup and status.
    """
    job, events = story
    world = JobWorld(job, graceful=True)
    world.stop_after = lives if lives is not None else stop_after
    for event in (*events, lambda world: world.wait(5)):
        try:
            event(world)
        except Killed:
            for _ in range(200):
                world.stop_after = world.writes + lives if lives is not None else None
                world.restart()
                try:
                    catch_up(world)
                    break
                except Killed:
                    continue
            else:
                raise AssertionError("no progress")
    world.stop_after = None
    world.wait(5)
    return world


def catch_up(world: JobWorld) -> None:
    world.settle()
    deadline = getattr(world, "deadline", world.now)
    if world.now < deadline:
        world.advance(deadline - world.now)


TIMES = (
    "creationTimestamp",
    "lastTransitionTime",
    "runningDuration",
    "resourceVersion",
    "generation",
    "startTime",
    "finishedAt",
)


def timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in TIMES and not k.startswith("evicted-")}
    return [timeless(item) for item in value] if isinstance(value, list) else value


def end_of(world: JobWorld) -> dict[str, Any]:
    return {f"{row.kind} {key}": timeless(body) for (row, key), body in world.objects.items()}


@pytest.mark.parametrize("name", STORIES)
def test_a_kill_after_any_write_changes_nothing(name: str) -> None:
    undisturbed = live(STORIES[name])
    expected = end_of(undisturbed)

    for write in range(undisturbed.writes):
        world = live(STORIES[name], stop_after=write)

        assert end_of(world) == expected, f"killed after write {write} of {undisturbed.writes}"


@pytest.mark.parametrize("name", STORIES)
@pytest.mark.parametrize("lives", [8, 9, 11])
def test_processes_that_live_for_a_few_writes_only_get_there_too(name: str, lives: int) -> None:
    expected = end_of(live(STORIES[name]))

    world = live(STORIES[name], lives=lives)

    assert end_of(world) == expected


def test_the_stories_are_long_enough_to_mean_something() -> None:
    writes = {name: live(story).writes for name, story in STORIES.items()}

    assert min(writes.values()) >= 3
    assert sum(writes.values()) > 250
    assert {live(story).job.status.state.phase for story in STORIES.values()} >= {
        "Completed",
        "Failed",
        "Running",
        "Terminated",
    }
    assert isinstance(live(STORIES["a failure restarts the job"]).job, Job)
