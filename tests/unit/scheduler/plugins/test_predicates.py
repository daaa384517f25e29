"""predicates: which nodes could take a task, and the reason each other gives."""

from __future__ import annotations

import pytest

from volcano.scheduler.model import Status

HOST = "kubernetes.io/hostname"


def near(label: str, key: str = HOST, **more):
    return {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": key, **more}


def required(kind: str, *terms):
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def spread(skew: int = 1, key: str = "zone", **more):
    selector = {"matchLabels": {"app": "web"}}
    return {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **more,
    }


# -- labels and taints ------------------------------------------------------------------------------------------------
def test_a_node_selector_chooses_nodes_by_label(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=[a_node("n1", labels={"disk": "ssd"}), a_node("n2")],
        pods=[a_pod("p", nodeSelector={"disk": "ssd"})],
    )

    assert given.fits("p") == ["n1"]
    assert given.reasons("p") == {"node(s) didn't match Pod's node affinity/selector": 1}


@pytest.mark.parametrize(
    ("expression", "fitting"),
    [
        ({"key": "size", "operator": "In", "values": ["1", "3"]}, ["n1"]),
        ({"key": "size", "operator": "NotIn", "values": ["1"]}, ["n2", "n3"]),
        ({"key": "size", "operator": "Exists"}, ["n1", "n2"]),
        ({"key": "size", "operator": "DoesNotExist"}, ["n3"]),
        ({"key": "size", "operator": "Gt", "values": ["1"]}, ["n2"]),
        ({"key": "size", "operator": "Lt", "values": ["2"]}, ["n1"]),
    ],
    ids=lambda value: value.get("operator", "") if isinstance(value, dict) else "",
)
def test_node_affinity_knows_every_operator(asked, a_node, a_pod, expression, fitting):
    term = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    given = asked(
        "predicates",
        nodes=[a_node("n1", labels={"size": "1"}), a_node("n2", labels={"size": "2"}), a_node("n3")],
        pods=[a_pod("p", affinity=affinity)],
    )

    assert given.fits("p") == fitting


def test_one_of_several_affinity_terms_is_enough_and_fields_name_nodes(asked, a_node, a_pod):
    terms = [
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]},
        {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
    ]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    given = asked(
        "predicates",
        nodes=[a_node("n1", labels={"disk": "ssd"}), a_node("n2"), a_node("n3")],
        pods=[a_pod("p", affinity=affinity)],
    )

    assert given.fits("p") == ["n1", "n2"]


def test_terms_that_demand_two_names_at_once_are_refused_before_any_node(asked, a_node, a_pod):
    fields = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("n1", "n2")]
    affinity = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}
        }
    }
    given = asked("predicates", nodes=[a_node("n1")], pods=[a_pod("p", affinity=affinity)])

    assert given.refusal("p") == "plugin NodeAffinity pre-predicates failed pod affinity terms conflict"


@pytest.mark.parametrize(
    ("toleration", "fits"),
    [
        (None, False),
        ({"key": "gpu", "operator": "Exists"}, True),
        ({"key": "gpu", "value": "yes"}, True),
        ({"key": "gpu", "value": "no"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "gpu", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_an_untolerated_taint_keeps_a_task_away(asked, a_node, a_pod, toleration, fits):
    given = asked(
        "predicates",
        nodes=[a_node("n1", taints=[{"key": "gpu", "value": "yes", "effect": "NoSchedule"}])],
        pods=[a_pod("p", tolerations=[toleration] if toleration else [])],
    )

    assert given.fits("p") == (["n1"] if fits else [])
    assert fits or given.reasons("p") == {"node(s) had untolerated taint(s)": 1}


def test_a_taint_that_only_discourages_keeps_nobody_away(asked, a_node, a_pod):
    taint = {"key": "gpu", "effect": "PreferNoSchedule"}
    given = asked("predicates", nodes=[a_node("n1", taints=[taint])], pods=[a_pod("p")])

    assert given.fits("p") == ["n1"]


def test_an_unschedulable_node_takes_only_those_who_tolerate_it(asked, a_node, a_pod):
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    given = asked(
        "predicates",
        nodes=[a_node("n1", unschedulable=True)],
        pods=[a_pod("p"), a_pod("daemon", tolerations=[toleration])],
    )

    assert given.fits("p") == []
    assert given.reasons("p") == {"node(s) were unschedulable": 1}
    assert given.fits("daemon") == ["n1"]


def test_each_node_is_counted_for_the_first_thing_that_settles_it(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=[
            a_node("n1", unschedulable=True, taints=[{"key": "a", "effect": "NoSchedule"}]),
            a_node("n2", taints=[{"key": "a", "effect": "NoSchedule"}]),
        ],
        pods=[a_pod("p")],
    )

    assert given.reasons("p") == {"node(s) were unschedulable": 1, "node(s) had untolerated taint(s)": 1}


@pytest.mark.parametrize("switch", ["NodeAffinityEnable", "TaintTolerationEnable"])
def test_a_filter_that_is_switched_off_is_not_asked(asked, a_node, a_pod, switch):
    given = asked(
        "predicates",
        arguments={f"predicate.{switch}": False},
        nodes=[a_node("n1", taints=[{"key": "a", "effect": "NoSchedule"}])],
        pods=[a_pod("p", nodeSelector={"no": "where"})],
    )

    assert len(given.reasons("p")) == 1


def test_with_the_cache_tasks_of_one_template_share_the_first_verdict(asked, a_node, a_pod):
    given = asked(
        "predicates",
        arguments={"predicate.CacheEnable": True},
        nodes=[a_node("n1")],
        pods=[
            a_pod("p1", nodeSelector={"no": "where"}, annotations={"volcano.sh/template-uid": "t"}),
            a_pod("p2", annotations={"volcano.sh/template-uid": "t"}),
        ],
    )

    assert given.fits("p1") == []
    assert given.fits("p2") == []
    assert given.reasons("p2") == {"plugin equivalence cache predicates failed": 1}


# -- counts and ports -------------------------------------------------------------------------------------------------
def test_a_node_takes_no_more_pods_than_it_states(asked, a_node, a_pod):
    given = asked("predicates", nodes=[a_node("n1", pods="2")], pods=[a_pod("r", on="n1"), a_pod("p"), a_pod("q")])
    before = given.fits("p")

    given.place("p", "n1")

    assert before == ["n1"]
    assert given.fits("q") == []
    assert given.reasons("q") == {"node(s) pod number exceeded": 1}


@pytest.mark.parametrize(
    ("wanted", "fits"),
    [
        ({"hostPort": 80}, False),
        ({"hostPort": 81}, True),
        ({"hostPort": 80, "protocol": "UDP"}, True),
        ({"hostPort": 80, "hostIP": "10.0.0.1"}, False),
    ],
)
def test_a_host_port_is_had_once_on_a_node(asked, a_node, a_pod, wanted, fits):
    given = asked(
        "predicates",
        nodes=[a_node("n1")],
        pods=[a_pod("r", on="n1", ports=[{"hostPort": 80}]), a_pod("p", ports=[wanted])],
    )

    assert given.fits("p") == (["n1"] if fits else [])
    assert fits or given.reasons("p") == {"node(s) didn't have free ports for the requested pod ports": 1}


def test_ports_on_different_addresses_do_not_collide(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=[a_node("n1")],
        pods=[
            a_pod("r", on="n1", ports=[{"hostPort": 80, "hostIP": "10.0.0.1"}]),
            a_pod("p", ports=[{"hostPort": 80, "hostIP": "10.0.0.2"}]),
        ],
    )

    assert given.fits("p") == ["n1"]


def test_a_port_taken_in_this_session_is_free_again_when_its_task_is_lifted(asked, a_node, a_pod):
    ports = [{"hostPort": 80}]
    given = asked(
        "predicates", nodes=[a_node("n1"), a_node("n2")], pods=[a_pod("p", ports=ports), a_pod("q", ports=ports)]
    )
    given.fits("q")

    given.place("p", "n1")
    while_taken = given.fits("q")
    given.lift("p")

    assert while_taken == ["n2"]
    assert given.fits("q") == ["n1", "n2"]


# -- neighbours -------------------------------------------------------------------------------------------------------
def test_affinity_follows_the_pods_it_names(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=[
            a_node("n1", labels={"zone": "a"}),
            a_node("n2", labels={"zone": "a"}),
            a_node("n3", labels={"zone": "b"}),
        ],
        pods=[
            a_pod("r", on="n1", labels={"app": "db"}),
            a_pod("p", affinity=required("podAffinity", near("db", "zone"))),
        ],
    )

    assert given.fits("p") == ["n1", "n2"]
    assert given.reasons("p") == {"node(s) didn't match pod affinity rules": 1}


def test_the_first_of_a_group_that_wants_to_be_together_may_go_anywhere(asked, a_node, a_pod):
    affinity = required("podAffinity", near("ring", "zone"))
    given = asked(
        "predicates",
        nodes=[a_node("n1", labels={"zone": "a"}), a_node("n2", labels={"zone": "b"}), a_node("n3")],
        pods=[a_pod(name, labels={"app": "ring"}, affinity=affinity) for name in ("p", "q")],
    )
    first = given.fits("p")

    given.place("p", "n2")

    assert first == ["n1", "n2"]
    assert given.fits("q") == ["n2"]


def test_anti_affinity_keeps_away_from_pods_placed_in_this_session(asked, a_node, a_pod):
    affinity = required("podAntiAffinity", near("ring"))
    given = asked(
        "predicates",
        nodes=[a_node("n1"), a_node("n2")],
        pods=[a_pod(name, labels={"app": "ring"}, affinity=affinity) for name in ("p", "q")],
    )
    given.fits("q")

    given.place("p", "n1", Status.PIPELINED)

    assert given.fits("q") == ["n2"]
    assert given.reasons("q") == {"node(s) didn't match pod anti-affinity rules": 1}


def test_existing_pods_anti_affinity_holds_against_newcomers_that_state_none(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=[
            a_node("n1", labels={"zone": "a"}),
            a_node("n2", labels={"zone": "a"}),
            a_node("n3", labels={"zone": "b"}),
        ],
        pods=[
            a_pod("r", on="n1", affinity=required("podAntiAffinity", near("web", "zone"))),
            a_pod("p", labels={"app": "web"}),
            a_pod("q", labels={"app": "db"}),
        ],
    )

    assert given.fits("p") == ["n3"]
    assert given.reasons("p") == {"node(s) didn't satisfy existing pods anti-affinity rules": 2}
    assert given.fits("q") == ["n1", "n2", "n3"]


def test_an_evicted_pod_is_no_neighbour_any_more(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=[a_node("n1")],
        pods=[
            a_pod("r", on="n1", labels={"app": "web"}),
            a_pod("p", affinity=required("podAntiAffinity", near("web"))),
        ],
    )
    before = given.fits("p")

    given.evict("r")

    assert before == []
    assert given.fits("p") == ["n1"]


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({}, ["n1", "n2"]),
        ({"namespaces": ["other"]}, ["n2"]),
        ({"namespaceSelector": {}}, ["n2"]),
        ({"namespaceSelector": {"matchLabels": {"team": "a"}}}, ["n2"]),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, ["n1", "n2"]),
    ],
)
def test_a_term_means_its_own_namespace_unless_it_says_more(asked, a_node, a_pod, more, fits):
    given = asked(
        "predicates",
        nodes=[a_node("n1"), a_node("n2")],
        namespaces=[{"metadata": {"name": "other", "labels": {"team": "a"}}}, {"metadata": {"name": "ns"}}],
        pods=[
            a_pod("r", on="n1", namespace="other", labels={"app": "web"}),
            a_pod("p", affinity=required("podAntiAffinity", near("web", **more))),
        ],
    )

    assert given.fits("p") == fits


def test_match_label_keys_quote_the_pods_own_labels(asked, a_node, a_pod):
    term = near("web", matchLabelKeys=["version"])
    given = asked(
        "predicates",
        nodes=[a_node("n1"), a_node("n2")],
        pods=[
            a_pod("r", on="n1", labels={"app": "web", "version": "1"}),
            a_pod("old", labels={"version": "1"}, affinity=required("podAntiAffinity", term)),
            a_pod("young", labels={"version": "2"}, affinity=required("podAntiAffinity", term)),
        ],
    )

    assert given.fits("old") == ["n2"]
    assert given.fits("young") == ["n1", "n2"]


# -- spreading --------------------------------------------------------------------------------------------------------
def zoned(a_node, *zones):
    return [a_node(f"n{place}", labels={"zone": zone} if zone else {}) for place, zone in enumerate(zones, 1)]


def test_a_domain_beyond_the_skew_is_refused(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=zoned(a_node, "a", "b", ""),
        pods=[
            a_pod("r", on="n1", labels={"app": "web"}),
            a_pod("p", labels={"app": "web"}, topologySpreadConstraints=[spread()]),
        ],
    )

    assert given.fits("p") == ["n2"]
    assert given.reasons("p") == {
        "node(s) didn't match pod topology spread constraints": 1,
        "node(s) didn't match pod topology spread constraints (missing required label)": 1,
    }


def test_spreading_counts_what_this_session_places(asked, a_node, a_pod):
    pods = [a_pod(name, labels={"app": "web"}, topologySpreadConstraints=[spread()]) for name in ("p", "q", "r")]
    given = asked("predicates", nodes=zoned(a_node, "a", "b"), pods=pods)

    given.place("p", "n1")
    after_one = given.fits("q")
    given.place("q", "n2")

    assert after_one == ["n2"]
    assert given.fits("r") == ["n1", "n2"]


def test_pods_being_deleted_do_not_count_for_spreading(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=zoned(a_node, "a", "b"),
        pods=[
            a_pod("r", on="n1", labels={"app": "web"}, deleting=True),
            a_pod("p", labels={"app": "web"}, topologySpreadConstraints=[spread()]),
        ],
    )

    assert given.fits("p") == ["n1", "n2"]


def test_fewer_domains_than_the_minimum_count_as_an_empty_one(asked, a_node, a_pod):
    constraint = spread(minDomains=2)
    given = asked(
        "predicates",
        nodes=zoned(a_node, "a", "a"),
        pods=[
            a_pod("r", on="n1", labels={"app": "web"}),
            a_pod("p", labels={"app": "web"}, topologySpreadConstraints=[constraint]),
        ],
    )

    assert given.fits("p") == []


@pytest.mark.parametrize(("policy", "fits"), [("Honor", ["n2"]), ("Ignore", [])])
def test_node_affinity_policy_says_whether_unwanted_nodes_make_a_domain(asked, a_node, a_pod, policy, fits):
    nodes = [
        a_node("n1", labels={"zone": "a"}),
        a_node("n2", labels={"zone": "b", "disk": "ssd"}),
    ]
    given = asked(
        "predicates",
        nodes=nodes,
        pods=[
            a_pod("r", on="n2", labels={"app": "web"}),
            a_pod(
                "p",
                labels={"app": "web"},
                nodeSelector={"disk": "ssd"},
                topologySpreadConstraints=[spread(nodeAffinityPolicy=policy)],
            ),
        ],
    )

    assert given.fits("p") == fits


@pytest.mark.parametrize(("policy", "fits"), [("Honor", ["n2"]), ("Ignore", [])])
def test_node_taints_policy_says_whether_tainted_nodes_make_a_domain(asked, a_node, a_pod, policy, fits):
    nodes = [
        a_node("n1", labels={"zone": "a"}, taints=[{"key": "x", "effect": "NoSchedule"}]),
        a_node("n2", labels={"zone": "b"}),
    ]
    given = asked(
        "predicates",
        nodes=nodes,
        pods=[
            a_pod("r", on="n2", labels={"app": "web"}),
            a_pod("p", labels={"app": "web"}, topologySpreadConstraints=[spread(nodeTaintsPolicy=policy)]),
        ],
    )

    assert given.fits("p") == fits


# -- volumes ----------------------------------------------------------------------------------------------------------
CLASS = {
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def claim(name, **more):
    spec = {
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
        "accessModes": ["ReadWriteOnce"],
    }
    return {"metadata": {"name": name, "namespace": "ns", **more.pop("metadata", {})}, "spec": {**spec, **more}}


def volume(name, on="", size="1Gi", **more):
    spec = {"storageClassName": "local", "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **more}
    if on:
        term = {"matchExpressions": [{"key": HOST, "operator": "In", "values": [on]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    labels = spec.pop("labels", {})
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": "Available"}}


def mounts(name):
    return [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


def bound(name, to):
    return claim(name, volumeName=to, metadata={"annotations": {"pv.kubernetes.io/bind-completed": "yes"}})


def test_a_bound_volume_is_reached_only_from_its_nodes(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=[a_node("n1"), a_node("n2")],
        persistentVolumes=[volume("v1", on="n2")],
        persistentVolumeClaims=[bound("c", "v1")],
        pods=[a_pod("p", volumes=mounts("c"))],
    )

    assert given.fits("p") == ["n2"]
    assert given.reasons("p") == {"node(s) didn't match PersistentVolume's node affinity": 1}


def test_a_claim_that_waits_goes_where_a_volume_is_free(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=[a_node("n1"), a_node("n2"), a_node("n3")],
        storageClasses=[CLASS],
        persistentVolumes=[volume("v1", on="n1"), volume("small", on="n3", size="1Mi")],
        persistentVolumeClaims=[claim("c")],
        pods=[a_pod("p", volumes=mounts("c"))],
    )

    assert given.fits("p") == ["n1"]
    assert given.reasons("p") == {"node(s) didn't find available persistent volumes to bind": 2}


def test_two_tasks_do_not_count_on_the_same_volume(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=[a_node("n1"), a_node("n2")],
        storageClasses=[CLASS],
        persistentVolumes=[volume("v1", on="n1"), volume("v2", on="n2")],
        persistentVolumeClaims=[claim("c1"), claim("c2")],
        pods=[a_pod("p", volumes=mounts("c1")), a_pod("q", volumes=mounts("c2"))],
    )
    before = given.fits("q")

    objection = given.place("p", "n1")
    while_taken = given.fits("q")
    given.lift("p")

    assert objection is None
    assert (before, while_taken, given.fits("q")) == (["n1", "n2"], ["n2"], ["n1", "n2"])


def test_the_volumes_of_bound_tasks_are_left_in_the_record(asked, a_node, a_pod):
    given = asked(
        "predicates",
        nodes=[a_node("n1")],
        storageClasses=[CLASS],
        persistentVolumes=[volume("v1", on="n1")],
        persistentVolumeClaims=[claim("c1")],
        pods=[a_pod("p", volumes=mounts("c1"))],
    )
    from volcano.scheduler.framework.statement import bind

    given.place("p", "n1")
    bind(given.session, given.task("p"))
    given.close()

    (choice,) = given.session.record.volumes["uid-p"]
    assert (choice.claim.name, choice.node, choice.volume) == ("c1", "n1", "v1")


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ([], 'persistentvolumeclaim "c" not found'),
        ([claim("c", storageClassName="")], "pod has unbound immediate PersistentVolumeClaims"),
        ([claim("c") | {"status": {"phase": "Lost"}}], "bound to non-existent persistentvolume"),
    ],
)
def test_a_claim_nobody_can_use_is_refused_before_any_node(asked, a_node, a_pod, claims, message):
    given = asked(
        "predicates",
        nodes=[a_node("n1")],
        storageClasses=[CLASS],
        persistentVolumeClaims=claims,
        pods=[a_pod("p", volumes=mounts("c"))],
    )

    assert message in given.refusal("p")


def test_a_class_with_a_provisioner_makes_volumes_where_it_may(asked, a_node, a_pod):
    topology = {"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}
    provided = CLASS | {"provisioner": "csi.example.com", "allowedTopologies": [topology]}
    given = asked(
        "predicates",
        nodes=[a_node("n1", labels={"zone": "a"}), a_node("n2", labels={"zone": "b"})],
        storageClasses=[provided],
        persistentVolumeClaims=[claim("c")],
        pods=[a_pod("p", volumes=mounts("c"))],
    )

    assert given.fits("p") == ["n1"]


def test_a_volume_in_another_zone_is_refused_by_old_and_new_labels(asked, a_node, a_pod):
    zone = "topology.kubernetes.io/zone"
    given = asked(
        "predicates",
        nodes=[
            a_node("n1", labels={"failure-domain.beta.kubernetes.io/zone": "a"}),
            a_node("n2", labels={zone: "b"}),
            a_node("n3"),
        ],
        persistentVolumes=[volume("v1", labels={zone: "a__c"})],
        persistentVolumeClaims=[bound("c", "v1")],
        pods=[a_pod("p", volumes=mounts("c"))],
    )

    assert given.fits("p") == ["n1", "n3"]
    assert given.reasons("p") == {"node(s) had no available volume zone": 1}


def test_a_node_attaches_no_more_volumes_of_a_driver_than_it_states(asked, a_node, a_pod):
    drivers = {"metadata": {"name": "n1"}, "spec": {"drivers": [{"name": "csi", "allocatable": {"count": 1}}]}}
    csi = {"driver": "csi"}
    given = asked(
        "predicates",
        nodes=[a_node("n1"), a_node("n2")],
        csiNodes=[drivers],
        persistentVolumes=[
            volume("v1", csi={**csi, "volumeHandle": "1"}),
            volume("v2", csi={**csi, "volumeHandle": "2"}),
        ],
        persistentVolumeClaims=[bound("c1", "v1"), bound("c2", "v2")],
        pods=[
            a_pod("r", on="n1", volumes=mounts("c1")),
            a_pod("same", volumes=mounts("c1")),
            a_pod("other", volumes=mounts("c2")),
        ],
    )

    assert given.fits("same") == ["n1", "n2"]
    assert given.fits("other") == ["n2"]
    assert given.reasons("other") == {"node(s) exceed max volume count": 1}


# -- kept answers -----------------------------------------------------------------------------------------------------
def test_kept_answers_are_those_asked_anew_whatever_moves(asked, a_node, a_pod):
    affinity = required("podAntiAffinity", near("ring", "zone"))
    pods = [a_pod(f"a{i}", labels={"app": "ring"}, affinity=affinity) for i in range(3)]
    pods += [a_pod(f"b{i}", labels={"app": "web"}, topologySpreadConstraints=[spread()]) for i in range(3)]
    pods += [a_pod(f"c{i}", ports=[{"hostPort": 80}]) for i in range(3)]
    objects = {"nodes": zoned(a_node, "a", "a", "b", "c"), "pods": pods}
    kept, fresh = asked("predicates", **objects), asked("predicates", **objects)
    names = [pod["metadata"]["name"] for pod in pods]
    for name in names:
        kept.fits(name)

    for given in (kept, fresh):
        given.place("a0", "n1")
        given.place("b0", "n3")
        given.place("c0", "n4", Status.PIPELINED)
        given.place("c1", "n2")
        given.lift("c1")

    waiting = [name for name in names if kept.task(name).status == Status.PENDING]
    assert {name: kept.fits(name) for name in waiting} == {name: fresh.fits(name) for name in waiting}


# -- claims of devices -------------------------------------------------------------------------------------------------
def _claiming(a_pod, **status):
    pod = a_pod("p", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
    pod["status"] |= status
    return pod


def _claim(status=None, **metadata):
    asked = {"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}}
    metadata = {"name": "made", "namespace": "ns", **metadata}
    return {"metadata": metadata, "spec": {"devices": {"requests": [asked]}}, "status": status or {}}


MADE = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "made"}]}


def test_a_pod_goes_where_its_claim_is_allocated(asked, a_node, a_pod):
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]
    allocation = {"nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]}, "devices": {}}
    given = asked(
        "predicates",
        nodes=[a_node("n1"), a_node("n2")],
        pods=[_claiming(a_pod, **MADE)],
        resourceClaims=[_claim({"allocation": allocation})],
    )

    assert given.refusal("p") == ""
    assert given.fits("p") == ["n2"]
    assert given.reasons("p") == {"resourceclaim not available on the node": 1}


def test_an_allocation_for_any_node_keeps_nobody_out_and_one_with_all_its_users_everybody(asked, a_node, a_pod):
    def fits(users):
        reserved = [{"resource": "pods", "uid": f"u{i}"} for i in range(users)]
        claims = [_claim({"allocation": {"devices": {}}, "reservedFor": reserved})]
        return asked("predicates", nodes=[a_node("n1")], pods=[_claiming(a_pod, **MADE)], resourceClaims=claims).fits(
            "p"
        )

    assert fits(255) == ["n1"]
    assert fits(256) == []


def test_a_claim_nobody_has_allocated_keeps_its_pod_waiting_and_says_so(asked, a_node, a_pod):
    given = asked("predicates", nodes=[a_node("n1")], pods=[_claiming(a_pod, **MADE)], resourceClaims=[_claim()])

    assert given.reasons("p") == {"cannot allocate all claims": 1}


def test_claims_that_are_not_there_are_told_before_any_node_is_looked_at(asked, a_node, a_pod):
    def refusal(pod, *claims):
        return asked("predicates", nodes=[a_node("n1")], pods=[pod], resourceClaims=list(claims)).refusal("p")

    leaving = _claim({"allocation": {}}, deletionTimestamp="2026-01-01T00:00:00Z")
    assert 'create the resourceclaim "gpu"' in refusal(_claiming(a_pod))
    assert 'resourceclaim "made" not found' in refusal(_claiming(a_pod, **MADE))
    assert 'resourceclaim "made" is being deleted' in refusal(_claiming(a_pod, **MADE), leaving)


def test_an_entry_for_which_no_claim_is_needed_needs_none(asked, a_node, a_pod):
    pod = _claiming(a_pod, resourceClaimStatuses=[{"name": "gpu"}])
    given = asked("predicates", nodes=[a_node("n1")], pods=[pod])

    assert (given.refusal("p"), given.fits("p")) == ("", ["n1"])
