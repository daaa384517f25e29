"""`vcctl job run --dry-run=schedule` and `vsub --test-only`: what would happen, without submitting anything."""

from __future__ import annotations

from collections import Counter

import msgspec

from volcano.api.errors import ApiError
from volcano.api.meta import JSON
from volcano.cli.command_line import say
from volcano.cli.connection import Connection
from volcano.cli.failures import Failed
from volcano.machinery.transport import Request

PATH = "/api/v1/namespaces/volcano-system/services/volcano-scheduler:metrics/proxy/simulate"
NODES_SHOWN = 8


def answer_to(connection: Connection, question: JSON) -> JSON:
    """What the scheduler says would happen now."""
    request = Request("POST", PATH, headers={"content-type": "application/json"}, body=msgspec.json.encode(question))
    try:
        answer = connection.attempt(connection.client.raw(request))
    except ApiError as error:
        raise Failed(f"the scheduler cannot be asked: {error.message}") from error
    found: JSON = msgspec.json.decode(answer.body)
    return found


def tell(connection: Connection, job: JSON) -> int:
    """Exit code 0 when the whole gang would be placed now, 1 when it would wait."""
    found = answer_to(connection, {"job": job})
    if "error" in found:
        raise Failed(str(found["error"]))
    name, placed, asked = job["metadata"].get("name", ""), found["placed"], found["asked"]
    if asked and placed == asked:
        nodes = Counter(pod["node"] for pod in found["pods"].values())
        shown = ", ".join(f"{node} ({count})" for node, count in sorted(nodes.items())[:NODES_SHOWN])
        more = f" and {len(nodes) - NODES_SHOWN} more nodes" if len(nodes) > NODES_SHOWN else ""
        say(f"job {name} would run now: {placed} of {asked} pods placed on {shown}{more}")
    else:
        say(f"job {name} would wait: {placed} of {asked} pods placed")
        for why in dict.fromkeys(each["why"] for each in found["jobs"].values() if each.get("why")):
            say(f"  {why}")
    promised = Counter(pod["waitsFor"] for pod in found["pods"].values() if "waitsFor" in pod)
    if promised:
        say(f"  {sum(promised.values())} pods would wait for room on {', '.join(sorted(promised)[:NODES_SHOWN])}")
    for each in found["evictions"]:
        say(f"  would evict {each['pod']} from {each['node']}: {each['reason']}")
    return 0 if asked and placed == asked else 1
