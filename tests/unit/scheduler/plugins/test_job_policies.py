"""priority, gang, conformance, drf, sla, pdb, cdp: what they say of jobs and victims."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Task
from volcano.testing.clusters import cluster, gang, running, share


def task_of(session: Session, name: str) -> Task:
    return next(task for task in session.snapshot.tasks.values() if task.name == name)


def names(tasks: list[Task]) -> list[str]:
    return [task.name for task in tasks]


# -- priority -------------------------------------------------------------------------------------------------------
def test_more_important_jobs_and_tasks_go_first() -> None:
    session = cluster(
        nodes={}, jobs={"a": gang(2, priority=1, task_priorities=[1, 5]), "b": gang(1, priority=9)}
    ).session("priority")

    assert session.ask.job_before(session.jobs["default/b"], session.jobs["default/a"])
    assert session.ask.task_before(task_of(session, "a-1"), task_of(session, "a-0"))


def test_only_less_important_jobs_are_preempted() -> None:
    given = cluster(
        nodes={"n": "cpu=9"},
        jobs={"low": running(["n"], priority=1), "same": running(["n"], priority=5), "mine": gang(1, priority=5)},
    )
    session = given.session("priority")
    candidates = [task_of(session, name) for name in ("low-0", "same-0")]

    assert names(session.ask.preemptable(task_of(session, "mine-0"), candidates)) == ["low-0"]


def test_reclaiming_gangs_looks_at_fairness_not_importance() -> None:
    session = cluster(nodes={"n": "cpu=9"}, jobs={"high": running(["n"], priority=9), "mine": gang(1)}).session(
        "priority"
    )
    candidates = [task_of(session, "high-0")]
    mine = session.jobs["default/mine"]

    assert session.ask.evictable("GangReclaim", mine, candidates) == candidates
    assert session.ask.evictable("GangPreempt", mine, candidates) == []


# -- gang -----------------------------------------------------------------------------------------------------------
def test_a_gang_spares_only_what_is_beyond_its_minimum() -> None:
    session = cluster(nodes={"n": "cpu=9"}, jobs={"j": running(["n"] * 3, min=2), "mine": gang(1)}).session("gang")
    candidates = [task_of(session, f"j-{i}") for i in range(3)]

    assert names(session.ask.reclaimable(task_of(session, "mine-0"), candidates)) == ["j-0"]


def test_an_unready_gang_is_said_to_be_unschedulable_with_numbers() -> None:
    outcome = cluster(nodes={"n": "cpu=1"}, jobs={"j": gang(2)}).schedule(plugins="gang, predicates")

    (condition,) = outcome.decisions.groups["default/j"].conditions
    assert (condition.type, condition.reason) == ("Unschedulable", "NotEnoughResources")
    assert condition.message.startswith(
        "1/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 2 minAvailable; "
        "Pending: 1 Schedulable, 1 Unschedulable. Origin reason is j-1: 0/1 nodes are unavailable: 1 Insufficient cpu."
    )
    assert outcome.decisions.gauges[("unschedule_job_count", ())] == 1


def test_a_ready_gang_is_said_to_be_scheduled() -> None:
    outcome = cluster(nodes={"n": "cpu=2"}, jobs={"j": gang(2)}).schedule(plugins="gang, predicates")

    (condition,) = outcome.decisions.groups["default/j"].conditions
    assert (condition.type, condition.reason) == ("Scheduled", "tasks in gang are ready to be scheduled")


def test_a_gang_of_which_somebody_runs_but_not_enough_is_unknown() -> None:
    outcome = cluster(nodes={"n": "cpu=1"}, jobs={"j": gang(2, on=["n"])}).schedule(plugins="gang, predicates")

    assert outcome.phases == {"j": "Unknown"}


def test_a_policy_without_enough_sub_groups_makes_the_job_invalid() -> None:
    policy = {"name": "w", "matchLabelKeys": ["g"], "minSubGroups": 2}
    session = cluster(nodes={}, jobs={"j": gang(2, policies=[policy], pod_labels={"g": "1"})}).session("gang")

    refusal = session.ask.job_valid(session.jobs["default/j"])

    assert refusal is not None
    assert refusal.message == "Not enough valid subGroups of each task for gang-scheduling"


# -- conformance ------------------------------------------------------------------------------------------------------
def test_the_clusters_own_pods_are_never_victims() -> None:
    critical = {"spec": {"priorityClassName": "system-node-critical"}}
    given = cluster(
        nodes={"n": "cpu=9"}, jobs={"j": running(["n"]), "sys": running(["n"], **critical), "mine": gang(1)}
    )
    session = given.session("conformance")
    candidates = [task_of(session, name) for name in ("j-0", "sys-0")]

    assert names(session.ask.preemptable(task_of(session, "mine-0"), candidates)) == ["j-0"]


# -- drf ---------------------------------------------------------------------------------------------------------------
def test_the_job_with_the_smaller_dominant_share_goes_first() -> None:
    given = cluster(
        nodes={"n": "cpu=10, memory=10Gi"},
        jobs={"much": running(["n"], each="cpu=1, memory=5Gi"), "little": running(["n"], each="cpu=2, memory=1Gi")},
    )
    session = given.session("drf")

    assert session.ask.job_before(session.jobs["default/little"], session.jobs["default/much"])


def test_with_a_hierarchy_every_branch_gets_its_part() -> None:
    def at(path: str) -> Any:
        weights = "/".join("1" for _ in path.split("/"))
        return share(annotations={"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights})

    given = cluster(
        nodes={"n": "cpu=10, memory=10G"},
        jobs={
            "sci": gang(10, each="cpu=1, memory=1G", min=0, queue="sci"),
            "dev": gang(10, each="cpu=1", min=0, queue="dev"),
            "prod": gang(10, each="memory=1G", min=0, queue="prod"),
        },
        queues={"sci": at("root/sci"), "dev": at("root/eng/dev"), "prod": at("root/eng/prod")},
    )

    only_order = {"enabledOverused": False, "enabledAllocatable": False}
    switches = {"drf": {"enableHierarchy": True}, "proportion": only_order}
    outcome = given.schedule("allocate", plugins="drf, proportion", switches=switches)

    counts = {job: sum(task.startswith(job) for task in outcome.binds) for job in ("sci", "dev", "prod")}
    assert counts == {"sci": 5, "dev": 5, "prod": 5}


# -- sla ---------------------------------------------------------------------------------------------------------------
def test_a_job_that_has_waited_long_enough_is_let_in_whatever_others_say() -> None:
    def outcome(now: datetime) -> dict[str, str]:
        jobs = {"j": gang(9, min_resources="cpu=9", annotations={"sla-waiting-time": "1h"})}
        return cluster(nodes={"n": "cpu=1"}, jobs=jobs, now=now).schedule("enqueue", "sla; overcommit").phases

    assert outcome(datetime(2026, 1, 1, 0, 59, tzinfo=UTC)) == {"j": "Pending"}
    assert outcome(datetime(2026, 1, 1, 1, 0, tzinfo=UTC)) == {"j": "Inqueue"}


def test_the_earlier_deadline_goes_first_and_no_deadline_last() -> None:
    jobs = {
        "none": gang(1),
        "late": gang(1, annotations={"volcano.sh/sla-waiting-time": "2h"}),
        "soon": gang(1, annotations={"volcano.sh/sla-waiting-time": "1h"}),
        "odd": gang(1, annotations={"volcano.sh/sla-waiting-time": "soon"}),
    }
    session = cluster(nodes={}, jobs=jobs).session("sla")
    soon, late, none, odd = (session.jobs[f"default/{name}"] for name in ("soon", "late", "none", "odd"))

    assert session.ask.job_before(soon, late)
    assert session.ask.job_before(late, none)
    assert session.ask.compare_jobs(none, odd) == 0


# -- pdb and cdp ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("allowed", "expected"), [(0, []), (1, ["j-0"]), (2, ["j-0", "j-1"])])
def test_evictions_stay_within_disruption_budgets(allowed: int, expected: list[str]) -> None:
    budget = {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}},
        "status": {"disruptionsAllowed": allowed},
    }
    given = cluster(
        nodes={"n": "cpu=9"},
        jobs={"j": running(["n", "n"], pod_labels={"app": "x"}), "mine": gang(1)},
        objects={"poddisruptionbudgets": [budget]},
    )
    session = given.session("pdb")
    candidates = [task_of(session, name) for name in ("j-0", "j-1")]

    assert names(session.ask.preemptable(task_of(session, "mine-0"), candidates)) == expected


@pytest.mark.parametrize(
    ("cooldown", "minute", "expected"), [("10m", 5, []), ("10m", 15, ["j-0"]), ("10mm", 5, ["j-0"])]
)
def test_a_pod_that_just_started_is_protected(cooldown: str, minute: int, expected: list[str]) -> None:
    scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    given = cluster(
        nodes={"n": "cpu=9"},
        jobs={
            "j": running(["n"], pod_labels={"volcano.sh/cooldown-time": cooldown}, status={"conditions": [scheduled]}),
            "mine": gang(1),
        },
        now=datetime(2026, 1, 1, 0, minute, tzinfo=UTC),
    )
    session = given.session("cdp")

    assert names(session.ask.preemptable(task_of(session, "mine-0"), [task_of(session, "j-0")])) == expected


def test_with_aging_a_job_that_has_waited_long_goes_before_a_more_important_one() -> None:
    jobs = {"old": gang(1, priority=1), "new": gang(1, priority=9)}
    session = cluster(nodes={}, jobs=jobs).session("priority", arguments={"priority": {"priority.aging": 10}})
    old, new = session.jobs["default/old"], session.jobs["default/new"]
    old.created, new.created = session.now - timedelta(hours=2), session.now

    assert session.ask.job_before(old, new)
