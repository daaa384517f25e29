"""Actions: what can be changed from a page, each with the command line that does the same, in the caller's name."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from volcano.api.batch import Action, Job
from volcano.api.bus import Command, command_body
from volcano.api.errors import ApiError
from volcano.api.jobs.simulation import Simulation
from volcano.api.manifests import ManifestError
from volcano.api.meta import JSON, Key, Resource
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.scheduling import Queue
from volcano.api.scheme import ResourceType, find_resource_type, resource_type
from volcano.cli.dry_run import PATH as SIMULATE_PATH
from volcano.cli.manifest_files import checked_documents
from volcano.machinery.client import Client
from volcano.machinery.transport import Request

COMMANDS: Final = resource_type(Command)
JOBS: Final = resource_type(Job)
QUEUES: Final = resource_type(Queue)
MAX_OBJECTS: Final = 20
MAX_WEIGHT: Final = 65535
PARTS: Final = ("guarantee", "deserved", "capability")
EXAMPLE: Final = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: hello
  namespace: default
spec:
  minAvailable: 2
  queue: default
  tasks:
    - name: worker
      replicas: 2
      template:
        spec:
          restartPolicy: Never
          containers:
            - name: main
              image: busybox
              command: [sh, -c, "echo hello from $HOSTNAME"]
              resources:
                requests: {cpu: 100m, memory: 64Mi}
"""


class ActionRefused(ValueError):
    """The form cannot be used; the message names the field."""


class KnownAction(msgspec.Struct, frozen=True):
    """`sentence` asks; `command` is the line that does the same; a bus action is asked of a controller."""

    name: str
    kind: type[Resource]
    label: str
    sentence: str
    command: str
    bus_action: str = ""
    destroys: bool = False


RESTART_LINE: Final = "kubectl create -n {namespace} -f -   # a Command (bus.volcano.sh/v1alpha1), RestartJob of {name}"

ACTIONS: Final = (
    KnownAction(
        "suspend", Job, "Suspend", "Suspend job {name}? Its running pods are ended; it goes on when it is resumed.",
        "vcctl job suspend {name} -n {namespace}", Action.ABORT_JOB, destroys=True,
    ),
    KnownAction(
        "resume", Job, "Resume", "Resume job {name}?", "vcctl job resume {name} -n {namespace}", Action.RESUME_JOB
    ),
    KnownAction(
        "requeue", Job, "Requeue", "Requeue job {name}? Its pods are ended and made again, and it waits for its turn.",
        RESTART_LINE,
        Action.RESTART_JOB, destroys=True,
    ),
    KnownAction(
        "delete", Job, "Delete", "Delete job {name}? Its pods are ended, and their logs are gone.",
        "vcctl job delete {name} -n {namespace}", destroys=True,
    ),
    KnownAction(
        "open", Queue, "Open", "Open queue {name}?", "vcctl queue operate {name} --action open", Action.OPEN_QUEUE
    ),
    KnownAction(
        "close", Queue, "Close", "Close queue {name}? It takes no further jobs; those that it has go on.",
        "vcctl queue operate {name} --action close", Action.CLOSE_QUEUE, destroys=True,
    ),
)  # fmt: skip


def find_action(name: str, kind: type[Resource]) -> KnownAction | None:
    return next((each for each in ACTIONS if each.name == name and each.kind is kind), None)


class ConfirmPage(msgspec.Struct, frozen=True, rename="camel"):
    """What is asked before something is done."""

    label: str
    sentence: str
    command: str
    place: str
    back: str
    destroys: bool
    fields: dict[str, str] = {}
    problem: str = ""


class SubmitPage(msgspec.Struct, frozen=True):
    """The form, and what a dry run found."""

    text: str
    problem: str = ""
    notes: list[str] = []
    command: str = "kubectl apply -f job.yaml"
    is_fine: bool = False


def command_line(action: KnownAction, key: Key) -> str:
    return action.command.format(name=shlex.quote(key.name), namespace=shlex.quote(key.namespace))


async def perform(client: Client, action: KnownAction, key: Key) -> None:
    row = JOBS if action.kind is Job else QUEUES
    if not action.bus_action:
        await client.delete(row, key)
        return
    target = await client.get_json(row, key)
    await client.create(COMMANDS, command_body(target, row.api_version, row.kind, action.bus_action))


# -- queues ---------------------------------------------------------------------------------------------------------
def queue_patch(form: Mapping[str, str], known: JSON) -> JSON:
    """The merge patch that brings a queue to what the form says; empty where it says what is there."""
    spec, patch = known.get("spec") or {}, dict[str, Any]()
    weight = form.get("weight", "")
    if not (weight.isascii() and weight.isdigit() and 1 <= int(weight) <= MAX_WEIGHT):
        raise ActionRefused(f"weight: must be a number between 1 and {MAX_WEIGHT}")
    if int(weight) != spec.get("weight", 1):
        patch["weight"] = int(weight)
    reclaimable = form.get("reclaimable") == "true"
    if reclaimable != (spec.get("reclaimable") is not False):
        patch["reclaimable"] = reclaimable
    for part in PARTS:
        stated = spec.get(part) or {}
        before = {
            name: str(text)
            for name, text in ((stated.get("resource") if part == "guarantee" else stated) or {}).items()
        }
        wanted = _amounts(part, form)
        if wanted != before:
            change = {**dict.fromkeys(before.keys() - wanted.keys()), **wanted}
            patch[part] = {"resource": change} if part == "guarantee" else change
    return {"spec": patch} if patch else {}


def _amounts(part: str, form: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for field, text in form.items():
        if field.startswith(f"{part}.") and text.strip():
            try:
                if parse_quantity(text.strip()).nanos < 0:
                    raise QuantityError
            except QuantityError as error:
                raise ActionRefused(f"{field}: {text!r} is not an amount, such as 4, 500m or 16Gi") from error
            found[field.removeprefix(f"{part}.")] = text.strip()
    return found


def queue_command(name: str, patch: JSON) -> str:
    body = msgspec.json.encode(patch).decode()
    return f"kubectl patch queue {shlex.quote(name)} --type merge -p {shlex.quote(body)}"


# -- submitting -----------------------------------------------------------------------------------------------------
def read_manifests(text: str) -> list[tuple[ResourceType, JSON]]:
    try:
        documents = checked_documents(text, source="the text")
    except ManifestError as error:
        raise ActionRefused(str(error)) from error
    if not documents or len(documents) > MAX_OBJECTS:
        raise ActionRefused(f"the text must hold between 1 and {MAX_OBJECTS} objects")
    found = []
    for document in documents:
        group = document["apiVersion"].rpartition("/")[0]
        row = find_resource_type(group, document["kind"])
        if row is None:
            raise ActionRefused(f"kind: {document['apiVersion']} {document['kind']} is not known here")
        if not isinstance(document.get("metadata"), dict):
            raise ActionRefused("metadata: is missing")
        if row.namespaced:
            document["metadata"].setdefault("namespace", "default")
        found.append((row, document))
    return found


async def try_out(client: Client, text: str) -> SubmitPage:
    """Every object as a dry run of the API server; of Jobs, where the scheduler would place them now."""
    notes: list[str] = []
    try:
        for row, document in read_manifests(text):
            name = document["metadata"].get("name") or document["metadata"].get("generateName", "")
            await client.create(row, document, dryRun="All")
            notes.append(f"{row.kind} {name} is valid")
            if row == JOBS:
                notes += await _placement(client, document)
    except ActionRefused as error:
        return SubmitPage(text, str(error), notes)
    except ApiError as error:
        return SubmitPage(text, error.message, notes)
    return SubmitPage(text, notes=notes, is_fine=True)


async def _placement(client: Client, job: JSON) -> list[str]:
    headers = {"content-type": "application/json"}
    try:
        answer = await client.raw(
            Request("POST", SIMULATE_PATH, headers=headers, body=msgspec.json.encode({"job": job}))
        )
        found = msgspec.json.decode(answer.body, type=Simulation)
    except (ApiError, msgspec.MsgspecError, RecursionError) as error:
        return [f"where it would run is not known: {getattr(error, 'message', error)}"]
    if found.asked and found.placed == found.asked:
        nodes = Counter(pod.node for pod in found.pods.values())
        places = ", ".join(f"{node} ({count})" for node, count in nodes.most_common(8))
        more = f" and {len(nodes) - 8} more nodes" if len(nodes) > 8 else ""
        lines = [f"it would run now: {found.placed} of {found.asked} pods placed on {places}{more}"]
    else:
        lines = [f"it would wait: {found.placed} of {found.asked} pods placed"]
        lines += list(dict.fromkeys(each.why for each in found.jobs.values() if each.why))
    return lines + [f"it would evict {each.pod} from {each.node}: {each.reason}" for each in found.evictions[:8]]


async def submit(client: Client, text: str) -> Key:
    """Creates every object; the key of the first Job, or of the first object."""
    keys: list[tuple[bool, Key]] = []
    for row, document in read_manifests(text):
        body = msgspec.json.decode(await client.create(row, document))
        keys.append((row != JOBS, Key(body["metadata"].get("namespace", ""), body["metadata"]["name"])))
    return min(keys, key=lambda each: each[0])[1]
