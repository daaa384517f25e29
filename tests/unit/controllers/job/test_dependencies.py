"""Jobs that wait for other jobs and for their turn in an array: when they are held, and what lets them go."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.api.batch import Job
from volcano.api.scheduling import PodGroup
from volcano.testing.pure_jobs import JobWorld, a_job, a_task


def waiting(name: str, dependency: str) -> dict[str, Any]:
    return a_job(a_task(), name=name, metadata={"annotations": {"volcano.sh/dependency": dependency}})


def member(index: int, limit: int) -> dict[str, Any]:
    labels = {"volcano.sh/array": "7", "volcano.sh/array-index": str(index)}
    return a_job(
        a_task(), name=f"a-{index}", metadata={"labels": labels, "annotations": {"volcano.sh/array-limit": str(limit)}}
    )


def has_group(world: JobWorld, name: str) -> bool:
    return world.get(PodGroup, f"{name}-uid-{name}") is not None


def ends(world: JobWorld, name: str, phase: str) -> None:
    world.change(Job, name, {"status": {"state": {"phase": phase}}})
    world.settle()


def state(world: JobWorld, name: str) -> tuple[str, str]:
    job = world.get(Job, name)
    assert job is not None
    return job.status.state.reason, job.status.state.message


@pytest.mark.parametrize(
    ("dependency", "end", "starts"),
    [
        ("afterok:first", "Completed", True),
        ("afterok:first", "Failed", False),
        ("afternotok:first", "Failed", True),
        ("afternotok:first", "Completed", False),
        ("afterany:first", "Failed", True),
        ("afterany:first", "Completed", True),
        ("after:first", "Running", True),
    ],
)
def test_a_job_starts_when_what_it_waits_for_has_happened(dependency: str, end: str, starts: bool) -> None:
    world = JobWorld(a_job(name="first"), waiting("j", dependency))
    world.settle()
    assert not has_group(world, "j") and state(world, "j")[0] == "Dependency"

    ends(world, "first", end)

    assert has_group(world, "j") is starts
    if not starts:
        world.wait(60)
        assert state(world, "j")[0] == "DependencyNeverSatisfied"


def test_all_of_several_jobs_are_waited_for_also_when_the_first_is_deleted_meanwhile() -> None:
    world = JobWorld(a_job(name="first"), a_job(name="second"), waiting("j", "afterok:first:second"))
    world.settle()

    ends(world, "first", "Completed")
    world.delete(Job, "first")
    world.settle()
    assert not has_group(world, "j")
    ends(world, "second", "Completed")

    assert has_group(world, "j")


def test_a_deleted_job_has_ended_but_not_well() -> None:
    world = JobWorld(a_job(name="first"), waiting("j", "afterany:first"), waiting("k", "afterok:first"))
    world.settle()

    world.delete(Job, "first")
    world.settle()

    assert has_group(world, "j") and not has_group(world, "k")


def test_of_an_array_only_as_many_jobs_start_as_its_limit_and_the_next_follow_in_order() -> None:
    world = JobWorld(*(member(index, 2) for index in (1, 2, 3, 4)), name="a-4")
    world.settle()
    assert [has_group(world, f"a-{index}") for index in (1, 2, 3, 4)] == [True, True, False, False]
    assert state(world, "a-3")[0] == "JobArrayTaskLimit"

    ends(world, "a-2", "Completed")
    assert [has_group(world, f"a-{index}") for index in (3, 4)] == [True, False]
    world.delete(Job, "a-1")
    world.settle()

    assert has_group(world, "a-4")
