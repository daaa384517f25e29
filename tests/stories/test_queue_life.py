"""Queues open, close, and take their children with them."""

from __future__ import annotations

import pytest

from tests.stories.builders import MINUTE, a_queue, a_queue_command
from volcano.api.scheduling import Queue


def state(system, name):
    found = system.get(Queue, name)
    return found.status.state if found else ""


async def command(system, name, action):
    await system.apply(a_queue_command(system.get(Queue, name), action))


async def a_parent_and_its_child(system):
    """Open queues; their names are the story's own, since queues are in no namespace."""
    parent = f"q-{system.namespace}"
    child = f"{parent}-child"
    await system.apply(a_queue(parent))
    await system.until(lambda: state(system, parent) == "Open")
    await system.apply(a_queue(child, parent=parent))
    await system.until(lambda: state(system, child) == "Open")
    return parent, child


def test_queues_open_close_and_cascade(host):
    @host
    async def story(system):
        names = await a_parent_and_its_child(system)
        await command(system, names[0], "CloseQueue")
        await system.until(lambda: [state(system, name) for name in names] == ["Closed", "Closed"])
        await command(system, names[0], "OpenQueue")
        await system.until(lambda: [state(system, name) for name in names] == ["Open", "Open"])

        for name in reversed(names):
            await system.delete(Queue, name)
            await system.until(lambda name=name: not system.get(Queue, name))


@pytest.mark.hosts("embedded")
def test_a_child_of_a_closed_queue_stays_closed(host):
    @host
    async def story(system):
        parent, child = await a_parent_and_its_child(system)
        await command(system, parent, "CloseQueue")
        await system.until(lambda: state(system, child) == "Closed")
        await command(system, child, "OpenQueue")
        await system.settle(MINUTE)

        assert state(system, child) == "Closed"
