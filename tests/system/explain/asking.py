"""Ask the scheduler of a running system why something waits, as `vcctl explain` does; and jobs to ask about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from volcano.api.meta import Key
from volcano.api.scheme import find_resource_type
from volcano.api.why.answers import WhyAnswer
from volcano.api.why.kinds import explained_kind
from volcano.app.system import SystemSettings
from volcano.cli.explain import PATH
from volcano.embedded.agent.node.settings import NodeSettings, NodeShape
from volcano.machinery.transport import Request
from volcano.testing.view import SystemView

EVENTS = find_resource_type("", "Event")
FOUR_CPUS = {"cpu": "4", "memory": "8Gi", "pods": "10"}
EIGHT_CPUS = {"cpu": "8", "memory": "32Gi", "pods": "20"}


async def explained(system: SystemView, name: str, kind: str = "vcjob", **more: Any) -> WhyAnswer:
    """What the command shows: the scheduler's answer, through the service proxy of the API."""
    asked = explained_kind(kind)
    row = find_resource_type(asked.group, asked.kind)
    body = await system.client.get_json(row, Key("default" if row.namespaced else "", name))
    events = (await system.client.list_json(EVENTS, "default"))["items"]
    question = {"kind": kind, "name": name, "object": body, "events": events, **more}
    request = Request("POST", PATH, headers={"content-type": "application/json"}, body=msgspec.json.encode(question))
    return msgspec.json.decode((await system.client.raw(request)).body, type=WhyAnswer)


def with_spec(task: dict[str, Any], **spec: Any) -> dict[str, Any]:
    task["template"]["spec"] |= spec
    return task


def labelled(task: dict[str, Any], **labels: str) -> dict[str, Any]:
    task["template"]["metadata"]["labels"] = labels
    return task


def with_container(task: dict[str, Any], **container: Any) -> dict[str, Any]:
    task["template"]["spec"]["containers"][0] |= container
    return task


def configured(folder: Path, actions: str, *more_plugins: str) -> SystemSettings:
    """The plugins of the shipped configuration, with other actions or further plugins."""
    names = ["overcommit", "drf", "predicates", "proportion", "nodeorder", *more_plugins]
    second = ", ".join(f"{{name: {name}}}" for name in names)
    file = folder / "volcano-scheduler.conf"
    file.write_text(
        f'actions: "{actions}"\ntiers:\n'
        "- plugins: [{name: priority}, {name: gang}, {name: conformance}]\n"
        f"- plugins: [{second}]\n"
    )
    return SystemSettings(scheduler_conf=str(file))


def nodes_of_sizes(*cpus: int, **devices: str) -> NodeSettings:
    shapes = (
        NodeShape(f"sim-{number}", {"cpu": str(cpu), "memory": "64Gi", "pods": "50", **devices})
        for number, cpu in enumerate(cpus)
    )
    return NodeSettings(tuple(shapes))
