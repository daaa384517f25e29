"""Waits until all three nodes of the Ray cluster are there, and sums squares on each of them."""

import time

import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

NODES = 3

ray.init()
while len(nodes := [node["NodeID"] for node in ray.nodes() if node["Alive"]]) < NODES:
    time.sleep(1)


@ray.remote
def squares(numbers):
    return ray.get_runtime_context().get_node_id(), sum(number * number for number in numbers)


parts = [range(start, 1000, NODES) for start in range(NODES)]
on_each = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
results = ray.get([squares.options(scheduling_strategy=on).remote(part) for on, part in zip(on_each, parts)])
print("nodes:", len({node for node, _ in results}))
print("sum of squares:", sum(part for _, part in results))
