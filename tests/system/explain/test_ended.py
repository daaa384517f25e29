"""After the fact: why a job ended or restarted, and why its pods were evicted, by whom and for whom."""

from tests.stories.builders import a_job, a_queue, a_task, policy
from tests.system.explain.asking import FOUR_CPUS, configured, explained
from volcano.testing.system import on_virtual_time

EVICTING = "enqueue, allocate, preempt, reclaim, backfill"


def a_priority_class(name, value):
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value}


async def told(system, name):
    """The answer, with the story's lines without their times."""
    found = await explained(system, name)
    return found, [line.split(" ", 2)[2] for line in found.story]


def test_a_completed_job_says_how_many_of_its_pods_succeeded():
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system):
        await system.apply(a_job("good", a_task(replicas=2, lasts="3s")))
        await system.until(lambda: system.phase("good") == "Completed")

        found, lines = await told(system, "good")

        assert found.text == "it completed: 2 of 2 pods succeeded"
        assert lines == ["Pending", "Running", "Completed"]


def test_a_job_that_failed_after_restarts_says_why_it_restarted_and_ended():
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system):
        policies = [policy("RestartJob", "PodFailed")]
        await system.apply(a_job("retry", a_task(lasts="3s", exits=3), policies=policies, maxRetry=2))
        await system.until(lambda: system.phase("retry") == "Failed")
        await system.settle()

        found, lines = await told(system, "retry")

        assert found.text == "it failed after 2 restarts: exit code 3 (pod retry-worker-0)"
        assert "job retry: RestartJob: PodFailed of pod retry-worker-0 with exit code 3" in lines
        assert lines[-1] == "Failed" and "pod retry-worker-0: Error, exit code 3" in lines


def test_a_preempted_job_says_for_whom_its_pod_was_evicted(tmp_path):
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS, settings=configured(tmp_path, EVICTING))
    async def story(system):
        for name, value in (("low", 10), ("high", 100)):
            await system.apply(a_priority_class(name, value))
        await system.apply(a_job("low", a_task(replicas=4), minimum=1, priorityClassName="low"))
        await system.until(lambda: sum(pod.status.phase == "Running" for pod in system.pods("low")) == 4)
        await system.apply(a_job("high", a_task(cpu="500m"), priorityClassName="high"))
        await system.until(lambda: system.phase("high") == "Running")
        await system.settle()

        found, lines = await told(system, "low")

        assert any(line.endswith("was evicted by preempt, to make room for default/high-worker-0") for line in lines)
        assert found.text.startswith("3 of its 4 pods run, 1 run after them")


def test_a_job_whose_pods_were_reclaimed_says_for_whom(tmp_path):
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS, settings=configured(tmp_path, EVICTING))
    async def story(system):
        await system.apply(a_queue("theirs", reclaimable=True))
        await system.apply(a_job("greedy", a_task(replicas=4), minimum=1, queue="theirs"))
        await system.until(lambda: sum(pod.status.phase == "Running" for pod in system.pods("greedy")) == 4)
        await system.apply(a_job("mine", a_task(cpu="500m")))
        await system.until(lambda: system.phase("mine") == "Running")
        await system.settle()

        _, lines = await told(system, "greedy")

        assert any(" was evicted by reclaim, to make room for default/mine-worker-0" in line for line in lines), lines
