"""Why jobs wait before their pods are placed: cases that were once explained wrongly, each with the first line it must
have, its tier and its numbers."""

import pytest

from tests.stories.builders import a_job, a_queue, a_task
from tests.system.explain.asking import (
    EIGHT_CPUS,
    FOUR_CPUS,
    configured,
    explained,
    labelled,
    nodes_of_sizes,
    with_container,
    with_spec,
)
from volcano.api.batch import Job
from volcano.api.scheduling import Queue
from volcano.cli.explain import rendered
from volcano.testing.system import on_virtual_time

YOU, ADMINISTRATOR = "needs a change by you", "needs a change by an administrator"
TURN, EVENT = "waits its turn", "waits for a known event"
PREEMPTING = "enqueue, allocate, preempt, reclaim, backfill"


def a_priority_class(name, value, **more):
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **more}


# -- how much there is -----------------------------------------------------------------------------------------------
def test_of_an_elastic_job_some_run_and_the_others_follow():
    @on_virtual_time(nodes=1, capacity={"cpu": "2", "memory": "8Gi", "pods": "10"})
    async def story(system):
        await system.apply(a_job("elastic", a_task(replicas=4, cpu="1"), minimum=1))
        await system.until(lambda: sum(pod.status.phase == "Running" for pod in system.pods("elastic")) == 2)

        found = await explained(system, "elastic")

        assert (found.reason, found.waiting_helps) == ("SomeRun", True)
        assert found.text.startswith("2 of its 4 pods run, 2 run after them")


def test_a_pod_larger_than_every_node_never_runs():
    @on_virtual_time(nodes=3)
    async def story(system):
        await system.apply(a_job("large", a_task(replicas=2, cpu="1000")))
        await system.until(lambda: system.job("large").status.state.reason)

        found = await explained(system, "large")

        assert (found.reason, found.waiting_helps) == ("PodTooLarge", False)
        assert "3 nodes → 0 have 1k cpu" in rendered(found)


def test_a_job_behind_another_waits_its_turn():
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system):
        await system.apply(a_job("first", a_task(replicas=3, cpu="1")))
        await system.settle()
        await system.apply(a_job("second", a_task(replicas=2, cpu="1")))
        await system.until(lambda: system.job("second").status.state.reason)

        found = await explained(system, "second")

        assert (found.tier, found.waiting_helps) == ("waits its turn", True)
        assert found.text == "needs 2 cpu for 2 pods; 1 are free; held by first"
        assert found.changes[0].sentence == "lower minAvailable from 2 to 1"


def test_the_most_that_is_free_on_one_node():
    @on_virtual_time(nodes=3, capacity=FOUR_CPUS)
    async def story(system):
        for number in range(3):
            selector = {"kubernetes.io/hostname": f"sim-{number}"}
            await system.apply(a_job(f"small-{number}", with_spec(a_task(cpu="1"), nodeSelector=selector)))
        await system.settle()
        await system.apply(a_job("four", a_task(cpu="4")))
        await system.until(lambda: system.job("four").status.state.reason or system.phase("four") == "Running")

        found = await explained(system, "four")

        assert "needs 4 cpu; the most free on one node is 3, 9 in all" in found.text


def test_more_nodes_are_needed_than_suit():
    @on_virtual_time(node_settings=nodes_of_sizes(8, 8, 8, 4, 4))
    async def story(system):
        await system.apply(a_job("wide", a_task(replicas=5, cpu="8")))
        await system.until(lambda: system.job("wide").status.state.reason)

        found = await explained(system, "wide")

        assert found.text == "needs 5 nodes with 8 cpu, 3 suit"
        assert found.tier == YOU


def test_a_resource_that_is_misspelt():
    @on_virtual_time(node_settings=nodes_of_sizes(8, 8, **{"nvidia.com/gpu": "4"}))
    async def story(system):
        limits = {"cpu": "1", "nvidia.com/gpus": "1"}
        task = with_container(a_task(), resources={"requests": limits, "limits": limits})
        await system.apply(a_job("gpus", task))
        await system.until(lambda: system.job("gpus").status.state.reason)

        found = await explained(system, "gpus")

        assert found.text == "no node has nvidia.com/gpus; did you mean nvidia.com/gpu?"
        assert (found.tier, found.changes[0].sentence) == (YOU, "ask for nvidia.com/gpu instead of nvidia.com/gpus")


# -- conditions between pods and nodes --------------------------------------------------------------------------------
def test_anti_affinity_on_too_few_nodes():
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    @on_virtual_time(nodes=3, capacity=EIGHT_CPUS)
    async def story(system):
        await system.apply(a_job("apart", labelled(with_spec(a_task(replicas=5), affinity=affinity), app="a")))
        await system.until(lambda: system.job("apart").status.state.reason)

        found = await explained(system, "apart")

        assert found.text == "at most 3 at a time: no two may share a node; 5 are needed"
        assert not found.waiting_helps


def test_a_host_port_on_too_few_nodes():
    @on_virtual_time(nodes=3, capacity=EIGHT_CPUS)
    async def story(system):
        ports = [{"containerPort": 80, "hostPort": 8080}]
        await system.apply(a_job("ports", with_container(a_task(replicas=4), ports=ports)))
        await system.until(lambda: system.job("ports").status.state.reason)

        found = await explained(system, "ports")

        assert found.text == "at most 3 at a time: each takes host port 8080 of a node; 4 are needed"
        assert found.tier == YOU


def test_a_topology_tier_that_is_too_small_on_an_empty_cluster(tmp_path):
    settings = configured(tmp_path, "enqueue, allocate, backfill", "network-topology-aware")

    def a_hypernode(name, tier, *members, kind="Node"):
        chosen = [{"type": kind, "selector": {"exactMatch": {"name": member}}} for member in members]
        return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name},
                "spec": {"tier": tier, "members": chosen}}  # fmt: skip

    @on_virtual_time(nodes=4, capacity=EIGHT_CPUS, settings=settings)
    async def story(system):
        await system.apply(a_hypernode("s0", 1, "sim-0", "sim-1"))
        await system.apply(a_hypernode("s1", 1, "sim-2", "sim-3"))
        await system.apply(a_hypernode("top", 2, "s0", "s1", kind="HyperNode"))
        await system.settle()
        topology = {"mode": "hard", "highestTierAllowed": 1}
        await system.apply(a_job("near", a_task(replicas=9, cpu="2"), networkTopology=topology))
        await system.until(lambda: system.job("near").status.state.reason)

        found = await explained(system, "near")

        assert found.text == ("no HyperNode of tier 1 holds it: it needs 18 cpu, the largest has 16; at tier 2 it fits")
        assert (found.tier, found.changes[0].sentence) == (YOU, "allow HyperNodes up to tier 2")


def test_pods_that_spread_over_two_domains_simply_run():
    spread = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
              "labelSelector": {"matchLabels": {"app": "a"}}}  # fmt: skip

    @on_virtual_time(nodes=2, capacity=EIGHT_CPUS)
    async def story(system):
        task = labelled(with_spec(a_task(replicas=4), topologySpreadConstraints=[spread]), app="a")
        await system.apply(a_job("even", task))
        await system.until(lambda: system.phase("even") == "Running")

        assert (await explained(system, "even")).reason == "RunsAsWanted"


# -- queues ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", ["Closing", "Closed"])
def test_a_queue_that_takes_no_jobs(state):
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system):
        await system.apply(a_queue("q"))
        await system.apply(a_job("first", a_task(cpu="4")))
        await system.until(lambda: system.phase("first") == "Running")
        await system.apply(a_job("stuck", a_task(cpu="4"), queue="q"))
        await system.patch(Queue, "q", {"status": {"state": state}}, subresource="status")
        await system.delete(Job, "first")
        await system.settle()

        found = await explained(system, "stuck")

        assert found.text == f"queue q is {state} and takes no jobs until it is opened"
        assert found.tier == ADMINISTRATOR
        assert found.changes[0].command == "vcctl queue operate q -a open"


def test_what_another_queue_is_guaranteed_leaves_too_little():
    @on_virtual_time(nodes=4, capacity=EIGHT_CPUS)
    async def story(system):
        await system.apply(a_queue("g", guarantee={"resource": {"cpu": "24"}}))
        await system.apply(a_job("large", a_task(replicas=3, cpu="4")))
        await system.settle()

        found = await explained(system, "large")

        assert found.text == "queue g is guaranteed 24 cpu, which leaves 8; the job needs 12"
        assert found.tier == YOU


def test_a_queue_above_its_share():
    """Two queues of equal weight share 20 cpus; one took 12 while it was alone."""

    @on_virtual_time(nodes=5, capacity=FOUR_CPUS)
    async def story(system):
        for name in ("greedy", "modest"):
            await system.apply(a_queue(name))
        await system.apply(a_job("first", a_task(replicas=12, cpu="1"), queue="greedy"))
        await system.until(lambda: system.phase("first") == "Running")
        await system.apply(a_job("theirs", a_task(replicas=3, cpu="4"), queue="modest"))
        await system.settle()
        await system.apply(a_job("second", a_task(cpu="1"), queue="greedy"))
        await system.settle()

        found = await explained(system, "second")

        assert found.text == "queue greedy holds 12 cpu of its share of 10; the job needs 1; held by first"
        assert found.tier == TURN


# -- room that may not be taken --------------------------------------------------------------------------------------
async def a_full_cluster_and_an_important_job(system, task=None, **low):
    """Every cpu is held by `low`, which could give up pods; `high` comes first."""
    for name, value in (("p-low", 10), ("p-high", 100)):
        await system.apply(a_priority_class(name, value))
    worker = labelled(a_task(replicas=4, cpu="2"), **low)
    await system.apply(a_job("low", worker, minimum=1, priorityClassName="p-low"))
    await system.until(lambda: sum(pod.status.phase == "Running" for pod in system.pods("low")) == 4)
    await system.apply(a_job("high", task or a_task(cpu="1"), priorityClassName="p-high"))
    await system.settle()


def taken_from_low(because):
    return f"would need the room of low, which may not be taken because {because}"


def test_victims_that_are_not_preemptable(tmp_path):
    @on_virtual_time(nodes=2, capacity=FOUR_CPUS, settings=configured(tmp_path, PREEMPTING))
    async def story(system):
        await a_full_cluster_and_an_important_job(system, **{"volcano.sh/preemptable": "false"})

        found = await explained(system, "high")

        assert (found.text, found.tier) == (taken_from_low("it is not preemptable"), TURN)


def test_a_scheduler_that_does_not_preempt():
    @on_virtual_time(nodes=2, capacity=FOUR_CPUS)
    async def story(system):
        await a_full_cluster_and_an_important_job(system)

        found = await explained(system, "high")

        assert (found.text, found.tier) == (taken_from_low("the scheduler has no action preempt"), TURN)
        assert "add the action preempt to volcano-scheduler.conf" in [change.sentence for change in found.changes]


def test_a_job_that_never_preempts(tmp_path):
    @on_virtual_time(nodes=2, capacity=FOUR_CPUS, settings=configured(tmp_path, PREEMPTING))
    async def story(system):
        await system.apply(a_priority_class("polite", 100, preemptionPolicy="Never"))
        task = with_spec(a_task(cpu="1"), priorityClassName="polite")
        await a_full_cluster_and_an_important_job(system, task)

        found = await explained(system, "high")

        assert (found.text, found.tier) == (taken_from_low("its preemptionPolicy is Never"), TURN)


def test_a_queue_that_gives_nothing_back(tmp_path):
    @on_virtual_time(nodes=2, capacity=FOUR_CPUS, settings=configured(tmp_path, PREEMPTING))
    async def story(system):
        await system.apply(a_queue("hoarder", reclaimable=False))
        await system.apply(a_job("hoard", a_task(replicas=4, cpu="2"), minimum=1, queue="hoarder"))
        await system.until(lambda: sum(pod.status.phase == "Running" for pod in system.pods("hoard")) == 4)
        await system.apply(a_job("late", a_task(cpu="1")))
        await system.settle()

        found = await explained(system, "late")

        assert found.text == (
            "would need the room of hoard, which may not be taken because queue hoarder is not reclaimable"
        )
        assert found.tier == TURN


# -- objects that are missing, refuse or hold back -------------------------------------------------------------------
def test_a_scheduler_that_does_not_exist():
    @on_virtual_time(nodes=1)
    async def story(system):
        await system.apply(a_job("lost", schedulerName="volcanoo"))
        await system.settle()

        found = await explained(system, "lost")

        assert found.text == "there is no scheduler volcanoo here; did you mean volcano?"
        assert found.changes[0].sentence == "use the scheduler volcano"


def test_a_quota_that_is_too_small():
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "rq"}, "spec": {"hard": {"pods": "2"}}}

    @on_virtual_time(nodes=1, capacity=EIGHT_CPUS)
    async def story(system):
        await system.apply(quota)
        await system.apply(a_job("three", a_task(replicas=3)))
        await system.until(lambda: len(system.pods("three")) == 2)
        await system.settle()

        found = await explained(system, "three")

        assert found.text.startswith("quota rq: 2 of 2 pods used, 3 needed")
        assert not found.waiting_helps


def test_a_scheduling_gate():
    @on_virtual_time(nodes=1)
    async def story(system):
        gates = [{"name": "example.com/quota-check"}]
        await system.apply(a_job("gated", with_spec(a_task(), schedulingGates=gates)))
        await system.until(lambda: system.pods("gated"))
        await system.settle()

        found = await explained(system, "gated")

        assert found.text == "waits for the scheduling gate example.com/quota-check to be removed (gated-worker-0)"
        assert found.tier == "waits for a known event"


def test_a_claim_that_does_not_exist():
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]

    @on_virtual_time(nodes=1)
    async def story(system):
        await system.apply(a_job("hungry", with_spec(a_task(), volumes=volumes)))
        await system.until(lambda: system.job("hungry").status.state.reason)

        found = await explained(system, "hungry")

        assert found.text == "there is no PersistentVolumeClaim data"
        assert (found.waiting_helps, found.changes[0].sentence) == (False, "create PersistentVolumeClaim data")


def test_a_service_account_that_does_not_exist():
    @on_virtual_time(nodes=1)
    async def story(system):
        await system.apply(a_job("robot", with_spec(a_task(), serviceAccountName="builder")))
        await system.settle()

        found = await explained(system, "robot")

        assert found.text == "there is no ServiceAccount builder in namespace default"


def test_a_priority_class_that_does_not_exist():
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system):
        await system.apply(a_priority_class("important", 7))
        await system.apply(a_job("of-pods", with_spec(a_task(), priorityClassName="importnat")))
        await system.apply(a_job("of-job", a_task(), priorityClassName="importnat"))
        await system.settle()

        for name in ("of-pods", "of-job"):
            found = await explained(system, name)

            assert found.text == "there is no PriorityClass importnat; did you mean important?"
            assert (found.tier, found.changes[0].sentence) == (YOU, "use PriorityClass important")


# -- tasks that start after others ------------------------------------------------------------------------------------
@pytest.mark.parametrize("admission", [True, False])
def test_a_gang_that_needs_pods_of_a_later_task(admission):
    """Without admission no task has a minimum, so that no task waits for another, and the whole gang starts at once."""

    @on_virtual_time(nodes=2, capacity=FOUR_CPUS, admission=admission)
    async def story(system):
        await system.apply(a_job("first", a_task(replicas=8)))
        await system.until(lambda: system.phase("first") == "Running")
        later = a_task("later", dependsOn={"name": ["worker"]})
        await system.apply(a_job("steps", a_task(replicas=2), later))
        await system.settle()

        found = await explained(system, "steps")

        if admission:
            assert found.text == (
                "minAvailable 3 needs task later, which starts only after worker; 2 pods come before it"
            )
            assert found.tier == YOU
        else:
            assert found.text.endswith("the most free on one node is 0, 0 in all; held by first")
            assert found.tier == TURN
