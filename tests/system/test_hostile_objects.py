"""Objects that were written to do harm: nothing hangs, also after a restart, and what makes no sense is refused."""

from __future__ import annotations

import pytest

from tests.stories.builders import a_job, a_task
from volcano.api.errors import ApiError, BadRequest, Invalid
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroup
from volcano.api.scheme import resource_type
from volcano.api.topology import HyperNode
from volcano.embedded.agent.node.settings import SIMULATED_CAPACITY, NodeSettings, NodeShape
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import run_virtually
from volcano.testing.system import VirtualSystem, on_virtual_time, virtual_system

MANY_AS = "a" * 50
NODES = NodeSettings(tuple(NodeShape(f"{MANY_AS}-{number}", SIMULATED_CAPACITY) for number in range(2)))
SLOW_PATTERN = {
    "apiVersion": "topology.volcano.sh/v1alpha1",
    "kind": "HyperNode",
    "metadata": {"name": "slow"},
    "spec": {"tier": 1, "members": [{"type": "Node", "selector": {"regexMatch": {"pattern": "(a+)+$"}}}]},
}


def test_a_pattern_that_takes_exponential_time_elsewhere_hangs_nothing_also_after_a_restart():
    """In a backtracking engine `(a+)+$` takes 2⁵⁰ steps on the names of these nodes."""
    store = MemoryStore()

    async def main() -> None:
        async with virtual_system(node_settings=NODES, store=store) as system:
            await system.apply(SLOW_PATTERN)
            await system.apply(a_job("before", a_task(replicas=2, lasts="5s")))
            await system.until(lambda: system.phase("before") == "Completed")
        async with virtual_system(node_settings=NODES, store=store, seed=1) as system:
            assert (await system.client.get(HyperNode, Key("", "slow"))).name == "slow"
            await system.apply(a_job("after", a_task(replicas=2, lasts="5s")))
            await system.until(lambda: system.phase("after") == "Completed")

    run_virtually(main())


@pytest.mark.parametrize("kind", ["merge", "json", "apply"])
@pytest.mark.parametrize(
    ("field", "value"),
    [("minMember", -1), ("minTaskMember", {"worker": -1}), ("minResources", {"cpu": "-1"})],
)
def test_a_patch_cannot_make_a_minimum_negative(field: str, value: object, kind: str):
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        group = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "g"}}
        await system.apply({**group, "spec": {"minMember": 1, "queue": "default"}})
        merge = {"spec": {field: value}}
        bodies = {
            "merge": merge,
            "json": [{"op": "add", "path": f"/spec/{field}", "value": value}],
            "apply": {**group, **merge},
        }
        parameters = {"fieldManager": "tests", "force": "true"} if kind == "apply" else {}

        with pytest.raises((BadRequest, Invalid), match=field) as refused:
            await system.client.patch(
                resource_type(PodGroup), Key("default", "g"), bodies[kind], kind=kind, **parameters
            )

        assert isinstance(refused.value, ApiError)
        assert (await system.client.get(PodGroup, Key("default", "g"))).spec.min_member == 1
