"""The description of /api/v1 is true: every endpoint's real answer, now and at a past moment, is checked against it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.dashboard.visiting import Visitor, job, signed_in
from volcano.api.batch import Job
from volcano.api.flow import JobFlow, JobTemplate
from volcano.api.scheme import resource_type
from volcano.api.times import timestamp
from volcano.api.topology import HyperNode
from volcano.app.local_history import local_history
from volcano.dashboard.openapi import PLACE, openapi
from volcano.machinery.transport import Response
from volcano.testing.system import VirtualSystem, on_virtual_time

JOBS = resource_type(Job)
FLOW = {"spec": {"flows": [{"name": "a"}, {"name": "b", "dependsOn": {"targets": ["a"]}}]}}
HYPERNODE = {"tier": 1, "members": [{"type": "Node", "selector": {"exactMatch": {"name": "sim-0"}}}]}


async def prepare(system: VirtualSystem) -> None:
    """A job that runs, one that waits, a flow with a step, a HyperNode."""
    template = {"metadata": {"name": "a", "namespace": "default"}, "spec": job("x")["spec"]}
    await system.client.create(resource_type(JobTemplate), template)
    await system.client.create(resource_type(JobFlow), {"metadata": {"name": "flow", "namespace": "default"}, **FLOW})
    await system.client.create(resource_type(HyperNode), {"metadata": {"name": "rack"}, "spec": HYPERNODE})
    await system.client.create(JOBS, job("a", labels={"team": "red"}))
    await system.client.create(JOBS, job("big", cpu="1000"))
    await system.until(lambda: system.phase("a") == "Running")
    await system.clock.sleep(timedelta(minutes=5))


def addresses(path: str) -> list[str]:
    """Real addresses of an endpoint."""
    names = {"/queues": "default", "/nodes": "sim-0", "/flows/{namespace}": "flow"}
    place = path.removeprefix("/api/v1")
    name = next((name for prefix, name in names.items() if place.startswith(prefix)), "a")
    made = path.replace("{namespace}", "default").replace("{name}", name)
    more = {"/jobs": ["?group=label:team&sort=-cpu"]}.get(place, [])
    also = [made.replace("/a/", "/big/")] if place.endswith("/why") else []
    return [made, *(f"{made}{text}" for text in more), *also]


async def answers(visitor: Visitor, document: dict[str, Any], then: str) -> dict[str, tuple[str, Response]]:
    found = {}
    for path, item in document["paths"].items():
        if path.endswith("/log"):
            continue  # simulated pods print nothing
        has_past = any(parameter["name"] == "at" for parameter in item["get"]["parameters"])
        for address in addresses(path):
            found[address] = (path, await visitor.get(address))
            if has_past:
                past = f"{address}{'&' if '?' in address else '?'}at={then}"
                found[past] = (path, await visitor.get(past))
    cycles = visitor_json(found["/api/v1/decisions"][1])["cycles"]
    opened = f"/api/v1/decisions?cycle={cycles[0]['number']}"
    found[opened] = ("/api/v1/decisions", await visitor.get(opened))
    return found


def visitor_json(answer: Response) -> Any:
    return msgspec.json.decode(answer.body)


def test_every_answer_is_as_described():
    validators = pytest.importorskip("jsonschema")
    document = openapi()

    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        async with local_history(system.system, system.clock, path=None):
            await prepare(system)
            then = timestamp(system.clock.now() - timedelta(minutes=2))
            visitor = await signed_in(system)
            found = await answers(visitor, document, then)
            missing = await visitor.get("/api/v1/nodes/none")
            served = await Visitor(visitor.dashboard).get(PLACE)
            refused = await Visitor(visitor.dashboard).get("/api/v1/jobs")
            await visitor.dashboard.close()

        assert {address: answer.body for address, (_, answer) in found.items() if answer.status != 200} == {}
        checked = set()
        for address, (path, answer) in found.items():
            validate(validators, document, schema_of(document, path, "200"), visitor_json(answer), address)
            checked.add(path)
        assert {*document["paths"]} - checked == {"/api/v1/jobs/{namespace}/{name}/log"}
        for answer, code in ((missing, "404"), (refused, "401")):
            assert answer.status == int(code)
            validate(validators, document, schema_of(document, "/api/v1/jobs", code), visitor_json(answer), code)
        assert served.status == 200 and visitor_json(served) == msgspec.json.decode(msgspec.json.encode(document))
        opened = next(answer for address, (_, answer) in found.items() if "cycle=" in address)
        assert visitor_json(opened)["snapshot"]["nodes"] == 4


def schema_of(document: dict[str, Any], path: str, code: str) -> Any:
    return document["paths"][path]["get"]["responses"][code]["content"]["application/json"]["schema"]


def validate(validators: Any, document: dict[str, Any], schema: Any, value: Any, where: str) -> None:
    whole = {**schema, "components": document["components"]}
    problems = list(validators.Draft202012Validator(whole).iter_errors(value))
    assert not problems, (where, [f"{list(each.path)}: {each.message}" for each in problems[:3]])


def test_the_description_names_everything_that_pages_read():
    document = openapi()

    operations = [item["get"]["operationId"] for item in document["paths"].values()]
    assert len({*operations}) == len(operations)
    assert "/api/v1/submit" not in document["paths"] and "/api/v1/overview" in document["paths"]
    row = document["components"]["schemas"]["JobRow"]
    assert row["properties"]["minAvailable"]["type"] == "integer" and "required" in row
    assert "bearer" in str(document["components"]["securitySchemes"])
