"""`vcctl job run --dry-run=schedule` and `vsub --test-only`: what would happen, without submitting anything."""

from __future__ import annotations

from collections import Counter

import msgspec

from volcano.api.errors import ApiError
from volcano.api.jobs.simulation import Simulation
from volcano.api.meta import JSON
from volcano.cli.command_line import say
from volcano.cli.connection import ApiConnection
from volcano.cli.failures import Failed
from volcano.machinery.transport import Request

PATH = "/api/v1/namespaces/volcano-system/services/volcano-scheduler:metrics/proxy/simulate"
MAX_NODES = 8


def simulated(connection: ApiConnection, question: JSON) -> Simulation:
    """The scheduler's answer: what would happen now."""
    request = Request("POST", PATH, headers={"content-type": "application/json"}, body=msgspec.json.encode(question))
    try:
        answer = connection.attempt(connection.client.raw(request))
    except ApiError as error:
        raise Failed(f"the scheduler cannot be asked: {error.message}") from error
    try:
        return msgspec.json.decode(answer.body, type=Simulation)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Failed(f"the scheduler's answer cannot be read: {error}") from error


def report(connection: ApiConnection, job: JSON) -> int:
    """Exit code 0 when the whole gang would be placed now, 1 when it would wait."""
    found = simulated(connection, {"job": job})
    name, placed, asked = job["metadata"].get("name", ""), found.placed, found.asked
    if asked and placed == asked:
        nodes = Counter(pod.node for pod in found.pods.values())
        shown = ", ".join(f"{node} ({count})" for node, count in sorted(nodes.items())[:MAX_NODES])
        more = f" and {len(nodes) - MAX_NODES} more nodes" if len(nodes) > MAX_NODES else ""
        say(f"job {name} would run now: {placed} of {asked} pods placed on {shown}{more}")
    else:
        say(f"job {name} would wait: {placed} of {asked} pods placed")
        for why in dict.fromkeys(each.why for each in found.jobs.values() if each.why):
            say(f"  {why}")
    promised = Counter(pod.waits_for for pod in found.pods.values() if pod.waits_for)
    if promised:
        say(f"  {sum(promised.values())} pods would wait for room on {', '.join(sorted(promised)[:MAX_NODES])}")
    for each in found.evictions:
        say(f"  would evict {each.pod} from {each.node}: {each.reason}")
    return 0 if asked and placed == asked else 1
