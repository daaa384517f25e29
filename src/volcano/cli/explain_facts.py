"""The facts that a question to the scheduler needs: the object itself, its events, and the last lines of logs.

`vcctl explain` gathers them with its one-shot client, the dashboard with the client of the person who asks.
"""

from __future__ import annotations

from typing import Final

from volcano.api.batch import JOB_NAME_KEY
from volcano.api.errors import ApiError
from volcano.api.meta import JSON, Key
from volcano.api.scheme import ResourceType, find_resource_type
from volcano.api.why.kinds import KNOWN, explained_kind
from volcano.cli.failures import Failed
from volcano.cli.resources import EVENTS, PODS
from volcano.machinery.client import Client
from volcano.machinery.transport import Request

MAX_LOGS: Final = 3
MAX_EVENTS: Final = 500
MAX_LINE_CHARACTERS: Final = 200
NAMED_KINDS: Final = ("Secret", "ConfigMap", "ServiceAccount")


async def gather(client: Client, word: str, namespace: str, name: str) -> JSON:
    """The question to the scheduler about one object."""
    row, asked = resource_of(word)
    place = namespace if row.namespaced else ""
    question: JSON = {"kind": asked, "name": name, "namespace": namespace}
    try:
        body = await client.get_json(row, Key(place, name))
        question["object"] = body
    except ApiError as error:
        if error.code == 404 and asked != "Job" and row.kind in ("Node", "Queue"):
            return question  # the scheduler says which name was meant
        raise
    if not row.namespaced:
        return question
    pods = await _pods(client, asked, namespace, name)
    question["objects"] = await _objects(client, asked, namespace, name)
    question["events"] = await _events(client, namespace, name, pods, question["objects"])
    question["logs"] = await _last_lines(client, namespace, pods)
    question["known"] = await _known(client, namespace, question, pods)
    return question


def resource_of(word: str) -> tuple[ResourceType, str]:
    """The kind that a word stands for, and the name under which the scheduler is asked about it."""
    kind = explained_kind(word)
    row = find_resource_type(kind.group, kind.kind) if kind is not None else None
    if kind is None or row is None:
        raise Failed(f"{word!r} cannot be explained; known: {', '.join(KNOWN)}")
    return row, kind.asked


async def _list(client: Client, row: ResourceType, namespace: str, **parameters: str) -> list[JSON]:
    found = await client.list_json(row, namespace, **parameters)
    return list(found.get("items") or ())


async def _pods(client: Client, kind: str, namespace: str, name: str) -> list[JSON]:
    if kind == "Job":
        return await _list(client, PODS, namespace, labelSelector=f"{JOB_NAME_KEY}={name}")
    pods = await _list(client, PODS, namespace)
    if kind == "Pod":
        return [pod for pod in pods if pod["metadata"]["name"] == name]
    return [pod for pod in pods if pod["metadata"]["name"].startswith(f"{name}-")]


async def _objects(client: Client, kind: str, namespace: str, name: str) -> list[JSON]:
    """What belongs to it and is needed to follow it: ReplicaSets, the jobs of a flow, templates."""
    wanted = {
        "Deployment": (("apps", "ReplicaSet"),),
        "JobFlow": (("batch.volcano.sh", "Job"), ("flow.volcano.sh", "JobTemplate")),
        "CronJob": (("batch.volcano.sh", "Job"),),
    }.get(kind, ())
    found: list[JSON] = []
    for group, each in wanted:
        row = find_resource_type(group, each)
        assert row is not None
        for body in await _list(client, row, namespace):
            owners = body["metadata"].get("ownerReferences") or ()
            if each == "JobTemplate" or any(owner.get("name") == name for owner in owners):
                found.append({"kind": each, **body})
    return found


async def _events(client: Client, namespace: str, name: str, pods: list[JSON], objects: list[JSON]) -> list[JSON]:
    names = {name, *(each["metadata"]["name"] for each in (*pods, *objects))}
    events = await _list(client, EVENTS, namespace)
    mine = [
        event
        for event in events
        if (about := (event.get("involvedObject") or {}).get("name", "")) in names or about.startswith(f"{name}-")
    ]
    return mine[-MAX_EVENTS:]


async def _last_lines(client: Client, namespace: str, pods: list[JSON]) -> dict[str, str]:
    """Of pods that failed or were restarted."""
    lines: dict[str, str] = {}
    for pod in pods:
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        restarted = any(int(status.get("restartCount") or 0) for status in statuses)
        failed = (pod.get("status") or {}).get("phase") == "Failed"
        if not (failed or restarted) or len(lines) >= MAX_LOGS:
            continue
        name = pod["metadata"]["name"]
        query = [("tailLines", "1"), *((("previous", "true"),) if restarted and not failed else ())]
        try:
            request = Request("GET", PODS.path(namespace, name, "log"), tuple(query))
            text = (await client.raw(request)).body.decode(errors="replace")
        except ApiError:
            continue
        last = [line for line in text.splitlines() if line.strip()]
        if last:
            lines[f"{namespace}/{name}"] = last[-1].strip()[:MAX_LINE_CHARACTERS]
    return lines


async def _known(client: Client, namespace: str, question: JSON, pods: list[JSON]) -> dict[str, list[str]]:
    """Names of objects that a pod may have meant; asked for only when something was not found."""
    texts = [str(event.get("message") or "") for event in question.get("events") or ()]
    for pod in pods:
        statuses = (pod.get("status") or {}).get("containerStatuses") or ()
        texts += [str(((each.get("state") or {}).get("waiting") or {}).get("message") or "") for each in statuses]
    found: dict[str, list[str]] = {}
    for kind in NAMED_KINDS:
        if any(kind.lower() in text.lower().replace(" ", "") and "not found" in text for text in texts):
            row = find_resource_type("", kind)
            assert row is not None
            try:
                listed = await client.list_json(row, namespace)
            except ApiError:
                continue
            found[kind] = [item["metadata"]["name"] for item in listed.get("items") or ()]
    return found
