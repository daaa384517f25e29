"""The fault simulation itself: a seed is always the same run, known bugs are found, and the faults are minimized."""

from __future__ import annotations

import asyncio
import logging
import re
from datetime import datetime

import pytest

from volcano.api.core import Pod
from volcano.controllers.job import status as job_status
from volcano.embedded.apiserver.kinds.pods import Pods
from volcano.history.batch import RowBatch
from volcano.history.commit import commit
from volcano.history.recorder import HistoryRecorder
from volcano.machinery.apply import Applier
from volcano.machinery.informer import Informer
from volcano.machinery.plan import Bind, Delete, ref
from volcano.scheduler.commit import committer
from volcano.scheduler.plugins.easy import Easy
from volcano.scheduler.plugins.proportion import Lender
from volcano.scheduler.plugins.reservations import Reservations
from volcano.scheduler.service.sender import Sender
from volcano.testing.faults import run
from volcano.testing.faults.campaign import SeedOutcome, SeedRecord
from volcano.testing.faults.disk import InlineSqliteStore
from volcano.testing.faults.minimize import minimized
from volcano.testing.faults.plan import HISTORY, SERVER, Fault, faults_of
from volcano.testing.faults.run import RunResult, machine_names, run_seed
from volcano.testing.faults.workload import FIRST_TIMED_SEED, workload_of


@pytest.fixture(autouse=True)
def quiet_logs():
    logger = logging.getLogger("volcano")
    before, logger.propagate = logger.propagate, False
    yield
    logger.propagate = before


@pytest.mark.parametrize("seed", [36, FIRST_TIMED_SEED + 1])
def test_a_seed_is_always_the_same_run(seed: int):
    first, second = run_seed(seed), run_seed(seed)

    assert first.violations == []
    assert first.lines == second.lines
    assert first.digest == second.digest


CLOCK_OF_THE_SCHEDULER_IS_SET_BACK = (26, [Fault(0, 81.551, "scheduler0", "clock", seconds=3600.0)])

HISTORY_IS_KILLED_AS_IT_STARTS = (10, [Fault(0, 0.3, HISTORY, "crash", seconds=60.0)])


@pytest.mark.parametrize(
    ("seed", "faults"), [CLOCK_OF_THE_SCHEDULER_IS_SET_BACK, HISTORY_IS_KILLED_AS_IT_STARTS], ids=["clock", "history"]
)
def test_what_the_simulation_found_stays_repaired(seed: int, faults: list[Fault]):
    assert run_seed(seed, faults).violations == []


def test_an_eviction_may_be_written_after_its_preemptor_was_bound_in_room_that_became_free_meanwhile():
    assert run_seed(4259).violations == []


def test_faults_are_removed_until_the_run_no_longer_fails_without_them():
    workload = workload_of(0)
    faults = faults_of(7, machine_names(workload), busy=[])
    guilty = {faults[0], faults[-1]}

    def fails_with_both(seed: int, chosen) -> RunResult:
        return RunResult(seed, list(chosen), ["it fails"] if guilty <= set(chosen) else [], [], "")

    assert len(faults) > len(guilty)
    assert set(minimized(fails_with_both(7, faults), fails_with_both).faults) == guilty


def test_a_campaign_goes_on_with_the_seeds_that_have_not_passed_on_the_same_sources(tmp_path):
    path = tmp_path / "cache" / "faults.jsonl"
    record = SeedRecord(path)
    record.add(SeedOutcome(1, "old"))
    record.add(SeedOutcome(2, "new"))
    record.add(SeedOutcome(3, "new", violations=["it fails"], faults=["#0"]))
    with path.open("a") as file:
        file.write('{"seed": 4, "sou')  # the process was ended here

    found = SeedRecord(path)

    assert [seed for seed in range(1, 5) if found.has_passed(seed, "new")] == [2]
    assert [seed for seed in range(1, 5) if found.has_passed(seed, "")] == [1, 2]
    assert found.passed(range(1, 5)) == {"old": 1, "new": 1}


# -- bugs that are planted, to see that they are found -------------------------------------------------------------------
def a_server_that_answers_before_it_commits(patch: pytest.MonkeyPatch) -> list[Fault]:
    die = InlineSqliteStore._die_committing

    def answer_and_die(store, batch, compactions):
        store._settle(batch, None)
        die(store, batch, compactions)

    patch.setattr(InlineSqliteStore, "_die_committing", answer_and_die)
    return [Fault(0, 10.0, SERVER, "crash-uncommitted", seconds=1.0)]


def an_informer_that_loses_deletions(patch: pytest.MonkeyPatch) -> list[Fault]:
    take = Informer._take
    patch.setattr(Informer, "_take", lambda self, event: take(self, event) if event.type != "DELETED" else None)
    return []


def a_scheduler_that_waits_for_times_to_come(patch: pytest.MonkeyPatch) -> list[Fault]:
    patch.setattr(committer, "is_recent", lambda moment, now, interval: now - moment < interval)
    return CLOCK_OF_THE_SCHEDULER_IS_SET_BACK[1]


def a_scheduler_that_deletes_pods_which_have_just_succeeded(patch: pytest.MonkeyPatch) -> list[Fault]:
    async def delete(sender: Sender, pod: Pod):
        outcome = await sender._applier.apply((Delete(ref(pod)),))
        return outcome, outcome.ok

    patch.setattr(Sender, "_delete_unfinished", delete)
    return [
        Fault(11, 9.438, "controllers0", "crash", seconds=0.254),
        Fault(3, 9.653, SERVER, "clock", seconds=2.0),
        Fault(1, 48.34, SERVER, "crash-committed", seconds=1.222),
    ]


def gangs_with_failed_and_evicted_pods_that_wait_for_ever(patch: pytest.MonkeyPatch) -> list[Fault]:
    patch.setattr(job_status, "_gang_is_short", lambda view, counts: False)
    patch.setattr(run, "END_SECONDS", 200.0)
    return [Fault(5, 0.377, "controllers0", "timeout", "write", 1, 17.340)]


def queues_that_keep_room_which_they_cannot_use(patch: pytest.MonkeyPatch) -> list[Fault]:
    patch.setattr(Lender, "lends_to", lambda lender, queue, task: False)
    patch.setattr(run, "END_SECONDS", 200.0)
    return run.all_faults_of(52, workload_of(52))


def a_server_that_lets_late_reports_overwrite_later_ones(patch: pytest.MonkeyPatch) -> list[Fault]:
    patch.setattr(Pods, "validate_status", lambda pods, obj, old: [])
    patch.setattr(run, "END_SECONDS", 20.0)
    return [Fault(2, 0.157, "node0", "late", "write", 1, 3.815)]


def a_scheduler_that_takes_lost_binds_for_done(patch: pytest.MonkeyPatch) -> list[Fault]:
    bind = Applier._bind

    async def lose(applier: Applier, step: Bind):
        if not step.pod.key.name.endswith("-1"):
            await bind(applier, step)

    patch.setattr(Applier, "_bind", lose)
    patch.setattr(run, "END_SECONDS", 20.0)
    return []


def a_history_that_writes_its_position_before_its_rows(patch: pytest.MonkeyPatch) -> list[Fault]:
    reached = HistoryRecorder._reached

    def write_early(recorder: HistoryRecorder, kind: str, revision: str, now: datetime):
        reached(recorder, kind, revision, now)
        batch = RowBatch()
        batch.positions = dict(recorder._batch.positions)
        commit(recorder._database, batch)

    patch.setattr(HistoryRecorder, "_reached", write_early)
    return [Fault(0, 123.2, HISTORY, "crash", seconds=1.0)]


def an_easy_that_keeps_no_promise(patch: pytest.MonkeyPatch) -> list[Fault]:
    patch.setattr(Easy, "job_startable", lambda plugin, job: None)
    patch.setattr(Easy, "allocatable", lambda plugin, queue, task: True)
    patch.setattr(Easy, "node_filter", lambda plugin, task, nodes: ())
    return []


def reservations_that_keep_nothing(patch: pytest.MonkeyPatch) -> list[Fault]:
    patch.setattr(Reservations, "_limiting", lambda plugin, task: [])
    return []


@pytest.mark.parametrize(
    ("plant", "seed", "found"),
    [
        (a_server_that_answers_before_it_commits, 26, "was acknowledged"),
        (an_informer_that_loses_deletions, 3, "is Aborting"),
        (a_scheduler_that_waits_for_times_to_come, 26, "is Pending"),
        (a_scheduler_that_deletes_pods_which_have_just_succeeded, 678, "counts .* and there are"),
        (gangs_with_failed_and_evicted_pods_that_wait_for_ever, 516, "is Pending, not Failed"),
        (queues_that_keep_room_which_they_cannot_use, 52, "job0 is Pending, not Completed"),
        (a_server_that_lets_late_reports_overwrite_later_ones, 299, "was Succeeded and is Running"),
        (a_scheduler_that_takes_lost_binds_for_done, 0, "was bound in part"),
        (an_easy_that_keeps_no_promise, FIRST_TIMED_SEED + 5, "was promised a start"),
        (reservations_that_keep_nothing, FIRST_TIMED_SEED + 2, "which is kept for queue red"),
        (a_history_that_writes_its_position_before_its_rows, 36, "is Completed, and Running in the history"),
    ],
)
def test_a_planted_bug_is_found(plant, seed: int, found: str, monkeypatch: pytest.MonkeyPatch):
    faults = plant(monkeypatch)

    violations = run_seed(seed, faults).violations

    assert any(re.search(found, each) for each in violations), violations


def test_a_seed_that_never_ends_has_failed(monkeypatch: pytest.MonkeyPatch):
    async def spin(_informer: Informer[Pod]) -> None:
        while True:
            await asyncio.sleep(0)

    monkeypatch.setattr("volcano.testing.faults.machines.MAX_ROUNDS_AT_ONE_TIME", 20_000)
    monkeypatch.setattr(Informer, "run", spin)
    result = run_seed(0, [])
    assert result.violations == ["it does not end: a component works on and on without waiting for anything"]
