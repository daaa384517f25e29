"""The Node object that an agent creates."""

from __future__ import annotations

from tests.unit.embedded.agent.kit import NOW
from volcano.embedded.agent.node.node_body import node_body
from volcano.embedded.agent.node.settings import NodeSettings, NodeShape


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
