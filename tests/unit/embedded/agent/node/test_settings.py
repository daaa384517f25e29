"""The settings of simulated nodes."""

from __future__ import annotations

from volcano.embedded.agent.node.settings import simulated_nodes


def test_simulated_nodes_have_the_promised_names_and_sizes():
    settings = simulated_nodes(2, capacity={"nvidia.com/gpu": "8"})

    assert [shape.name for shape in settings.nodes] == ["sim-0", "sim-1"]
    assert settings.nodes[0].capacity == {"cpu": "32", "memory": "256Gi", "pods": "110", "nvidia.com/gpu": "8"}
