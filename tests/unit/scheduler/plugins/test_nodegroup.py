"""nodegroup: queues and the groups of nodes they may use."""

from __future__ import annotations

import pytest

GROUP = "volcano.sh/nodegroup-name"


def queue(name="q", parent="", limits="", **rules):
    def rule(prefix):
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": rules.get(f"{prefix}required", []),
            "preferredDuringSchedulingIgnoredDuringExecution": rules.get(f"{prefix}preferred", []),
        }

    spec = {"weight": 1, "parent": parent}
    if rules:
        spec["affinity"] = {"nodeGroupAffinity": rule(""), "nodeGroupAntiAffinity": rule("anti_")}
    annotations = {"volcano.sh/nodegroup-resource-limits": limits} if limits else {}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": spec, "status": {"state": "Open"}}


@pytest.fixture
def nodes(a_node):
    return [*(a_node(f"n{group}", labels={GROUP: f"g{group}"}) for group in (1, 2, 3, 4)), a_node("free")]


def test_the_last_rule_that_names_a_group_decides(asked, a_pod, nodes):
    rules = queue(required=["g1", "g3"], preferred=["g3"], anti_required=["g2", "g4"], anti_preferred=["g4"])
    given = asked("nodegroup", nodes=nodes, queues=[rules], pods=[a_pod("p")])

    assert given.fits("p") == ["n1", "n3", "n4"]
    assert given.scores("p") == {"n1": 100.0, "n2": 0.0, "n3": 150.0, "n4": -1.0, "free": 0.0}
    assert given.reasons("p") == {
        "node does not satisfy the node group affinity": 1,
        "node group label not found": 1,
    }


@pytest.mark.parametrize(("strict", "fits"), [(True, []), (False, ["free"])])
def test_a_queue_without_affinity_uses_only_free_nodes_if_any(asked, a_pod, nodes, strict, fits):
    given = asked("nodegroup", arguments={"strict": strict}, nodes=nodes, queues=[queue()], pods=[a_pod("p")])

    assert given.fits("p") == fits
    assert given.reasons("p")["node group affinity not specified"] == 4


def test_preference_may_go_by_order(asked, a_pod, nodes):
    rules = queue(preferred=["g1", "g3"])
    given = asked("nodegroup", arguments={"enablePreferredOrder": True}, nodes=nodes, queues=[rules], pods=[a_pod("p")])

    assert given.scores("p", among=["n1", "n3"]) == {"n1": 50.0, "n3": 25.0}


@pytest.mark.parametrize(("hierarchy", "fits"), [(True, ["n2"]), (False, [])])
def test_with_hierarchy_the_nearest_ancestors_affinity_holds(asked, a_pod, nodes, hierarchy, fits):
    queues = [queue(parent="middle"), queue("middle", parent="top"), queue("top", required=["g2"])]
    given = asked("nodegroup", switches={"enableHierarchy": hierarchy}, nodes=nodes, queues=queues, pods=[a_pod("p")])

    assert given.fits("p") == fits


def test_a_groups_limit_counts_what_the_queue_already_has_there(asked, a_pod, nodes):
    rules = queue(required=["g1", "g2"], limits='{"g1": {"cpu": "3"}}')
    given = asked("nodegroup", nodes=nodes, queues=[rules], pods=[a_pod("p", cpu="2"), a_pod("q", cpu="2")])
    before = given.fits("q")

    given.place("p", "n1")
    full = given.fits("q")
    given.lift("p")

    assert (before, full, given.fits("q")) == (["n1", "n2"], ["n2"], ["n1", "n2"])


def test_running_tasks_count_against_the_limit_and_unlisted_resources_do_not(asked, a_pod, nodes):
    rules = queue(required=["g1"], limits='{"g1": {"cpu": "3"}}')
    given = asked(
        "nodegroup",
        nodes=nodes,
        queues=[rules],
        pods=[a_pod("r", on="n1", cpu="2", memory="9Gi"), a_pod("p", cpu="2"), a_pod("q", cpu="1", memory="9Gi")],
    )

    assert given.fits("p") == []
    assert given.reasons("p")["node group resource limit exceeded"] == 1
    assert given.fits("q") == ["n1"]


def test_limits_nobody_can_read_refuse_every_node(asked, a_pod, nodes):
    given = asked("nodegroup", nodes=nodes, queues=[queue(required=["g1"], limits="{")], pods=[a_pod("p")])

    assert given.reasons("p") == {"node group resource limit annotation invalid": 5}
