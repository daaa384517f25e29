"""Control groups, addresses, probes' thresholds, the journal, status patches: the agent's small pure parts."""

from __future__ import annotations

import ipaddress
from pathlib import Path

import pytest

from tests.unit.embedded.agent.kit import NOW, a_pod
from volcano.api.core import ResourceRequirements
from volcano.api.kubelet import Probe
from volcano.embedded.agent.network.network import Addresses, BridgedNetwork, NetworkUnavailable
from volcano.embedded.agent.node.node_body import node_body
from volcano.embedded.agent.node.settings import NodeSettings, NodeShape, simulated_nodes
from volcano.embedded.agent.processes.cgroups import limits_v1, limits_v2
from volcano.embedded.agent.processes.journal import Journal
from volcano.embedded.agent.processes.supervisor_protocol import ProcessRecord
from volcano.embedded.agent.runtime.probes import Threshold, port_of
from volcano.embedded.agent.status_writer import changes_between
from volcano.embedded.agent.streams.kubelet_server import is_trusted


def test_limits_become_settings_of_control_groups():
    resources = ResourceRequirements(limits={"cpu": "1500m", "memory": "64Mi"}, requests={"cpu": "500m"})

    assert limits_v1(resources) == {
        "cpu": {"cpu.shares": "512", "cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "150000"},
        "memory": {"memory.limit_in_bytes": str(64 * 1024 * 1024)},
    }
    assert limits_v2(resources)["cpu.max"] == "150000 100000"
    assert limits_v2(resources)["memory.max"] == str(64 * 1024 * 1024)


def test_a_container_without_limits_needs_no_group():
    assert limits_v1(ResourceRequirements()) == {} and limits_v2(ResourceRequirements()) == {}


def test_addresses_differ_and_come_back_last():
    addresses = Addresses(ipaddress.IPv4Network("10.0.0.0/27"))
    first = [addresses.take(f"pod-{number}") for number in range(5)]
    assert len(set(first)) == 5 and addresses.take("pod-0") == first[0]

    addresses.give_back("pod-0")

    assert addresses.take("another") not in first


def test_a_full_network_says_so():
    addresses = Addresses(ipaddress.IPv4Network("10.0.0.0/27"))
    with pytest.raises(NetworkUnavailable, match=r"10\.0\.0\.0/27"):
        for number in range(40):
            addresses.take(f"pod-{number}")


def test_pods_get_a_network_the_machine_does_not_have_yet(tmp_path: Path):
    first = BridgedNetwork(tmp_path).subnet

    second = BridgedNetwork(tmp_path, routes=[first]).subnet

    assert not first.overlaps(second)


def test_a_verdict_needs_enough_answers_in_a_row():
    threshold = Threshold(Probe(success_threshold=1, failure_threshold=3), verdict=True)

    assert [threshold.take(ok) for ok in (True, False, False, True, False, False, False, False)] == [
        None, None, None, None, None, None, False, None,
    ]  # fmt: skip


def test_a_port_is_found_by_number_or_name():
    pod = a_pod(containers=[{"name": "main", "image": "x", "ports": [{"name": "web", "containerPort": 80}]}])
    main = pod.spec.containers[0]

    assert port_of({"port": "web"}, main) == 80 and port_of({"port": 8080}, main) == 8080
    with pytest.raises(ValueError, match="nope"):
        port_of({"port": "nope"}, main)


def a_record(name: str, code: int | None = None) -> ProcessRecord:
    return ProcessRecord(
        container=name, pid=1, started=1.0, finished=None, exit_code=code, is_lost=False, oom_killed=False
    )


def test_the_journal_remembers_exits_and_knows_what_was_lost(tmp_path: Path):
    journal = Journal(str(tmp_path / "journal"))
    for name in ("ended", "running", "forgotten"):
        journal.started(a_record(name))
    journal.exited([a_record("ended", 3), a_record("forgotten", 0)])
    journal.forget(["forgotten"])

    after = Journal(str(tmp_path / "journal")).records

    assert after["ended"]["exit_code"] == 3 and not after["ended"]["is_lost"]
    assert after["running"]["is_lost"]


def test_a_torn_last_line_of_the_journal_is_passed_over(tmp_path: Path):
    path = tmp_path / "journal"
    Journal(str(path)).exited([a_record("ended", 3)])
    with path.open("ab") as file:
        file.write(b'{"container": "half')

    assert list(Journal(str(path)).records) == ["ended"]


def test_only_what_changed_is_written():
    sent = {
        "phase": "Pending",
        "podIP": "x",
        "conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}],
    }
    now = {
        "phase": "Running",
        "podIP": "x",
        "conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}],
    }

    assert changes_between(sent, now) == {"phase": "Running", "conditions": [{"type": "B", "status": "True"}]}
    assert changes_between(now, now) == {}
    assert changes_between(None, now) == now


def test_a_node_says_what_it_has_over_what_a_file_said():
    file = {"metadata": {"labels": {"zone": "a"}}, "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {"allocatable": {"cpu": "3"}}}  # fmt: skip
    shape = NodeShape("n", {"cpu": "4", "pods": "10"}, {"disk": "ssd"}, body=file)

    node = node_body(shape, NodeSettings((shape,)), NOW, runtime="simulated")

    assert (
        node["metadata"]["labels"] | {"zone": "a", "disk": "ssd", "kubernetes.io/hostname": "n"}
        == node["metadata"]["labels"]
    )
    assert node["status"]["allocatable"] == {"cpu": "3", "pods": "10"} and node["status"]["capacity"]["cpu"] == "4"
    assert node["spec"]["taints"] == [{"key": "k", "effect": "NoSchedule"}]
    assert file["status"] == {"allocatable": {"cpu": "3"}}, "what was given is not touched"


def test_simulated_nodes_have_the_promised_names_and_sizes():
    settings = simulated_nodes(2, capacity={"nvidia.com/gpu": "8"})

    assert [shape.name for shape in settings.nodes] == ["sim-0", "sim-1"]
    assert settings.nodes[0].capacity == {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}


@pytest.mark.parametrize(
    ("subject", "trusted"),
    [
        ((), False),
        (((("commonName", "kube-apiserver-kubelet-client"),),), True),
        (((("organizationName", "system:masters"),), (("commonName", "admin"),)), True),
        (((("organizationName", "developers"),), (("commonName", "mallory"),)), False),
    ],
)
def test_only_the_api_servers_certificate_is_trusted(subject: tuple[object, ...], trusted: bool):
    assert is_trusted({"subject": subject}) is trusted
    assert not is_trusted(None)
