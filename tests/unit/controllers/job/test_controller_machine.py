"""Random lives of a job: events, commands, kills of the controller, in any order; what must hold after each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.scheduling import PodGroup
from volcano.testing.pure_jobs import JobWorld, a_command, a_job, a_task, policy
from volcano.testing.pure_world import Killed

EVENTS = ("PodFailed", "PodEvicted", "TaskCompleted", "TaskFailed", "Unknown", "*")
ACTIONS = (
    "RestartJob",
    "AbortJob",
    "TerminateJob",
    "CompleteJob",
    "ResumeJob",
    "RestartTask",
    "RestartPod",
    "RestartPartition",
)
FINISHED = ("Completed", "Failed", "Terminated")

rules = st.builds(
    lambda action, event, timeout: policy(action, event, **({"timeout": timeout} if timeout else {})),
    st.sampled_from(ACTIONS),
    st.sampled_from((*EVENTS, "PodPending")),
    st.sampled_from((None, None, "5s")),
)
exits = st.builds(lambda action, code: policy(action, exitCode=code), st.sampled_from(ACTIONS), st.integers(1, 2))
policies = st.lists(rules | exits, max_size=2)


@st.composite
def tasks(draw: st.DrawFn, name: str) -> dict[str, Any]:
    replicas = draw(st.integers(0, 3))
    task = a_task(name, replicas, minAvailable=draw(st.integers(0, replicas)), policies=draw(policies))
    if replicas in (2, 3) and draw(st.booleans()):
        task["partitionPolicy"] = {"totalPartitions": replicas, "partitionSize": 1}
    return task


@st.composite
def jobs(draw: st.DrawFn) -> dict[str, Any]:
    both = [draw(tasks("a")), draw(tasks("b"))]
    total = sum(task["replicas"] for task in both)
    spec: dict[str, Any] = {"minAvailable": draw(st.integers(0, total)), "maxRetry": draw(st.integers(1, 4))}
    if draw(st.booleans()):
        spec["minSuccess"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        spec["plugins"] = {"svc": [], "env": []}
    if draw(st.booleans()):
        both[1]["dependsOn"] = {"name": ["a"]}
    return a_job(*both, policies=draw(policies), **spec)


class JobMachine(RuleBasedStateMachine):
    """One job, everything that can happen to it, and a controller that dies now and then."""

    world: JobWorld
    resumed = False

    @initialize(job=jobs(), graceful=st.booleans())
    def submit(self, job: dict[str, Any], graceful: bool) -> None:
        self.world = JobWorld(job, graceful=graceful)
        self.settle()
        self.known = self.world.job.status
        self.commands = 0

    def settle(self) -> None:
        try:
            self.world.settle()
        except Killed:
            self.world.stop_after = None
            self.world.restart()
            self.world.settle()

    def pods(self) -> list[Pod]:
        return [pod for pod in self.world.all(Pod) if not pod.is_deleting]

    # -- the cluster ------------------------------------------------------------------------------------------------
    @rule(phase=st.sampled_from(("Inqueue", "Running", "Unknown", "Pending")))
    def schedule(self, phase: str) -> None:
        for group in self.world.all(PodGroup):
            self.world.change(PodGroup, group.name, {"status": {"phase": phase}})
        self.settle()

    @rule(phase=st.sampled_from(("Running", "Succeeded", "Failed")), code=st.integers(1, 2), data=st.data())
    def report(self, phase: str, code: int, data: st.DataObject) -> None:
        open_ = [pod.name for pod in self.pods() if not pod.is_finished]
        if open_:
            names = data.draw(st.sets(st.sampled_from(open_), min_size=1))
            self._try(lambda: self.world.set_phase(phase, *names, exit_code=code if phase == "Failed" else 0))

    @rule(restarts=st.integers(1, 4), data=st.data())
    def restart_container(self, restarts: int, data: st.DataObject) -> None:
        running = [pod.name for pod in self.pods() if pod.status.phase == "Running"]
        if running:
            self._try(lambda: self.world.set_phase("Running", data.draw(st.sampled_from(running)), restarts=restarts))

    @rule(data=st.data())
    def lose_a_pod(self, data: st.DataObject) -> None:
        names = [pod.name for pod in self.world.all(Pod)]
        if names:
            name = data.draw(st.sampled_from(names))
            self._try(lambda: self.world.evict(name))

    @rule()
    def reap(self) -> None:
        self._try(self.world.reap)

    @rule(seconds=st.integers(1, 10))
    def wait(self, seconds: int) -> None:
        end = self.world.now + timedelta(seconds=seconds)
        self._try(lambda: self.world.wait(seconds))
        if self.world.now < end:
            self.world.advance(end - self.world.now)

    def _try(self, happen: Any) -> None:
        try:
            happen()
        except Killed:
            self.world.stop_after = None
            self.world.restart()
            self.world.settle()

    # -- the user -----------------------------------------------------------------------------------------------------
    @rule(action=st.sampled_from((*ACTIONS, "SyncJob", "Nonsense")))
    def command(self, action: str) -> None:
        self.commands += 1
        self.resumed = self.resumed or action == "ResumeJob"
        self.world.put(a_command(action, name=f"c{self.commands}"))
        self.settle()

    @rule(a=st.integers(0, 3), b=st.integers(0, 3))
    def scale(self, a: int, b: int) -> None:
        self._try(lambda: self.world.scale(a=a, b=b))

    # -- the controller -------------------------------------------------------------------------------------------------
    @precondition(lambda self: self.world.stop_after is None)
    @rule(writes=st.integers(0, 6))
    def doom(self, writes: int) -> None:
        """The controller will die after so many more writes."""
        self.world.stop_after = self.world.writes + writes

    @rule()
    def die(self) -> None:
        self.world.stop_after = None
        self.world.restart()
        self.world.settle()

    # -- what must hold -------------------------------------------------------------------------------------------------
    @invariant()
    def never_more_pods_than_replicas(self) -> None:
        """A job that ended keeps its finished pods even if it is scaled down afterwards."""
        if self.world.phase not in ("Pending", "Running"):
            return
        for task in self.world.job.spec.tasks:
            of_task = [pod for pod in self.pods() if pod.annotations["volcano.sh/task-spec"] == task.name]
            assert len(of_task) <= task.replicas, f"{len(of_task)} pods of {task.name}"

    @invariant()
    def no_pod_is_missing_from_a_gang_that_was_let_in(self) -> None:
        group = self.world.group
        if self.world.phase not in ("Pending", "Running") or group is None or group.status.phase in ("", "Pending"):
            return
        names = {pod.name for pod in self.world.all(Pod)}
        for task in self.world.job.spec.tasks:
            if task.depends_on is None:
                assert {f"j-{task.name}-{index}" for index in range(task.replicas)} <= names

    @invariant()
    def nothing_unfinished_survives_from_an_old_version(self) -> None:
        version = self.world.job.status.version
        old = [
            p.name for p in self.pods() if int(p.annotations["volcano.sh/job-version"]) < version and not p.is_finished
        ]
        assert old == []

    @invariant()
    def history_only_grows(self) -> None:
        before, after = self.known, self.world.job.status
        if before.state.phase in FINISHED:
            assert after.state.phase == before.state.phase
        if before.state.phase == "Aborted" and after.state.phase != "Aborted":
            assert self.resumed
        assert after.version >= before.version
        assert before.retry_count <= after.retry_count <= self.world.job.spec.max_retry
        self.known = after

    @invariant()
    def a_finished_job_has_nothing_left_running(self) -> None:
        if self.world.phase in (*FINISHED, "Aborted"):
            assert all(pod.is_finished for pod in self.pods())
            assert self.world.group is None
            assert not any(key.name.endswith("-svc") for _, key in self.world.objects)

    @invariant()
    def commands_are_consumed(self) -> None:
        assert not [key for row, key in self.world.objects if row.kind == "Command"]

    @invariant()
    def looking_again_changes_nothing(self) -> None:
        if self.world.stop_after is not None:
            return
        before = dict(self.world.objects)
        self.world.restart()
        self.world.settle()
        changed = [key for key in before if self.world.objects.get(key) != before[key]]
        assert not changed, f"a controller that looked again changed {changed}"
        assert isinstance(self.world.job, Job)


JobMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
TestJobMachine = JobMachine.TestCase
