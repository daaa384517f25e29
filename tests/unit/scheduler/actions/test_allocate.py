"""allocate: who is placed, in which order, and what happens to those who do not fit."""

from __future__ import annotations

from volcano.testing.clusters import cluster, gang, machine, running, share


def test_a_gang_waits_until_all_of_it_fits() -> None:
    given = cluster(nodes={"n1": "cpu=2"}, jobs={"mpi": gang(size=3, each="cpu=1")})

    outcome = given.schedule(actions="enqueue, allocate", plugins="gang, predicates")

    assert outcome.binds == {}
    assert outcome.why["mpi"] == "2 of 3 tasks fit; 1 node: Insufficient cpu"


def test_a_gang_that_cannot_fit_leaves_its_room_to_others() -> None:
    given = cluster(nodes={"n1": "cpu=2"}, jobs={"big": gang(3), "small": gang(2)})

    outcome = given.schedule(plugins="gang, predicates")

    assert set(outcome.binds) == {"small-0", "small-1"}


def test_queues_take_turns_by_their_share() -> None:
    given = cluster(
        nodes={"n1": "cpu=2"},
        jobs={"a": gang(2, min=0, queue="q1"), "b": gang(2, min=0, queue="q2")},
        queues={"q1": share(), "q2": share()},
    )

    outcome = given.schedule(plugins="gang; drf, proportion, predicates")

    assert set(outcome.binds) == {"a-0", "b-0"}


def test_a_job_above_its_minimum_gets_what_is_left() -> None:
    given = cluster(nodes={"n1": "cpu=5"}, jobs={"elastic": gang(4, min=2), "other": gang(2)})

    outcome = given.schedule(plugins="priority, gang; predicates")

    assert set(outcome.binds) == {"elastic-0", "elastic-1", "elastic-2", "other-0", "other-1"}


def test_a_role_that_fails_stops_the_job_only_if_its_minimum_is_not_met() -> None:
    roles = {"roles": ("master", "worker"), "size": 4}
    nodes = {"n1": "cpu=3"}

    enough = cluster(nodes=nodes, jobs={"j": gang(min=2, role_minimums={"master": 1, "worker": 1}, **roles)})
    too_few = cluster(nodes=nodes, jobs={"j": gang(min=4, role_minimums={"master": 2, "worker": 2}, **roles)})

    assert len(enough.schedule(plugins="gang").binds) == 3
    assert too_few.schedule(plugins="gang").binds == {}


def test_a_node_that_refused_a_larger_task_of_a_role_is_not_asked_about_a_smaller_one() -> None:
    def given(*, role: str, remembers: bool) -> dict[str, str]:
        found = cluster(nodes={"n1": "cpu=2", "n2": "cpu=4"}, jobs={"j": gang(2, each="cpu=1", roles=(role,))})
        larger = next(pod for pod in found.objects["pods"] if pod["metadata"]["name"] == "j-0")
        larger["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4"
        arguments = {"allocate": {"predicateErrorCacheEnable": remembers}}
        return found.schedule(plugins="gang, predicates", configurations=arguments).binds

    both = {"j-0": "n2", "j-1": "n1"}

    assert given(role="worker", remembers=True) == {}
    assert given(role="worker", remembers=False) == both
    assert given(role="", remembers=True) == both


def test_pods_of_a_role_are_spread_over_zones_in_turn() -> None:
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "a"}},
    }
    nodes = {name: machine("cpu=8", labels={"zone": name}) for name in ("east", "west")}
    job = gang(4, roles=("worker",), pod_labels={"app": "a"}, spec={"topologySpreadConstraints": [spread]})

    outcome = cluster(nodes=nodes, jobs={"j": job}).schedule(plugins="gang, predicates")

    assert sorted(outcome.binds.values()) == ["east", "east", "west", "west"]


def test_room_that_others_are_leaving_is_promised_not_given() -> None:
    leaving = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    given = cluster(nodes={"n1": "cpu=1"}, jobs={"old": running(["n1"]), "new": gang(1)})
    given.objects["pods"][0]["metadata"] |= leaving["metadata"]

    outcome = given.schedule(plugins="gang, predicates")

    assert outcome.binds == {}
    assert outcome.pipelined == {"new-0": "n1"}
    assert outcome.decisions.why["default/new"].stage == "wait"


def test_what_is_free_but_promised_is_not_given_to_another() -> None:
    given = cluster(
        nodes={"n1": "cpu=6"},
        jobs={
            "old": running(["n1"], each="cpu=2"),
            "promised": gang(1, each="cpu=5", priority=100),
            "late": gang(1, each="cpu=3"),
        },
    )
    leaving = next(pod for pod in given.objects["pods"] if pod["metadata"]["name"] == "old-0")
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    outcome = given.schedule(plugins="priority, gang, predicates")

    assert outcome.binds == {}
    assert outcome.pipelined == {"promised-0": "n1"}


def test_a_pod_that_was_nominated_to_a_node_goes_there() -> None:
    given = cluster(nodes={f"n{i}": "cpu=4" for i in range(5)}, jobs={"a": gang(1, status={"nominatedNodeName": "n3"})})

    assert given.schedule(plugins="gang, predicates").binds == {"a-0": "n3"}


def test_gated_pods_are_not_placed() -> None:
    given = cluster(nodes={"n1": "cpu=4"}, jobs={"a": gang(1, min=0, spec={"schedulingGates": [{"name": "hold"}]})})

    assert given.schedule(plugins="gang, predicates").binds == {}


def test_a_job_with_too_few_pods_is_not_tried_and_says_so() -> None:
    given = cluster(nodes={"n1": "cpu=9"}, jobs={"a": gang(2, min=3)})

    outcome = given.schedule(plugins="gang")

    assert outcome.binds == {}
    assert outcome.why["a"] == "Not enough valid tasks for gang-scheduling, valid: 2, min: 3"


def test_our_own_shard_is_preferred_when_sharding_is_soft_and_required_when_hard() -> None:
    def given(mode: str, size: str) -> dict[str, str]:
        extra = {"shardingMode": mode, "nodesInShard": ["n2"]}
        return (
            cluster(nodes={"n1": "cpu=8", "n2": size}, jobs={"a": gang(1)}, extra=extra).schedule(plugins="gang").binds
        )

    assert given("soft", "cpu=1") == {"a-0": "n2"}
    assert given("soft", "cpu=0") == {"a-0": "n1"}
    assert given("hard", "cpu=0") == {}


def test_identical_tasks_fill_nodes_as_if_each_had_been_asked_for_alone() -> None:
    nodes = {f"n{i}": machine(f"cpu={2 + i % 5}, memory={4 + i % 3}Gi") for i in range(12)}
    together = cluster(nodes=nodes, jobs={"a": gang(20, each="cpu=1, memory=1Gi")})
    apart = cluster(nodes=nodes, jobs={f"a{i:02d}": gang(1, each="cpu=1, memory=1Gi") for i in range(20)})

    plugins = "gang; predicates, nodeorder, binpack"
    first = sorted(together.schedule(plugins=plugins, seed=3).binds.values())

    assert first == sorted(apart.schedule(plugins=plugins, seed=3).binds.values())


def test_a_sub_group_a_policy_requires_is_placed_first() -> None:
    policies = [{"name": "w", "matchLabelKeys": ["group"], "subGroupSize": 2, "minSubGroups": 1}]
    given = cluster(nodes={"n1": "cpu=2"}, jobs={"a": gang(2, policies=policies, pod_labels={"group": "0"})})

    assert given.schedule(plugins="gang, predicates").binds == {"a-0": "n1", "a-1": "n1"}
