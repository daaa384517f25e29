"""/queues/mutate and /queues/validate: defaults, quantities, state, hierarchy annotations, deletion.

Parents and children are in queue_hierarchy.py.
"""

from __future__ import annotations

import re
from math import isfinite
from typing import Final

from volcano.admission.queue_hierarchy import (
    children_outside_cycles,
    has_inner_parent,
    parent_problem,
    sharing_problems,
)
from volcano.admission.queue_resources import allocated_pods, amounts, guaranteed_quantities
from volcano.admission.review import (
    ALLOWED,
    DEFAULT_QUEUE,
    FieldChange,
    Reader,
    ReviewAnswer,
    Settings,
    change,
    deny,
    read,
    refuse_all,
    section,
)
from volcano.api.fields import Field
from volcano.api.meta import JSON, Key
from volcano.api.pods.validation.resources import check_amount
from volcano.api.scheduling import ROOT_QUEUE, Queue
from volcano.machinery.admission import CREATE, DELETE, Attributes

HIERARCHY: Final = "volcano.sh/hierarchy"
WEIGHTS: Final = "volcano.sh/hierarchy-weights"
STATES: Final = ("Open", "Closed")
NUMBER: Final = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?")
BODY: Final = "requestBody"


def mutate_queue(attributes: Attributes, _reader: Reader, _settings: Settings) -> ReviewAnswer:
    queue = read(Queue, attributes.object)
    if isinstance(queue, ReviewAnswer):
        return queue
    changes: list[FieldChange] = []
    path, weights = queue.annotations.get(HIERARCHY, ""), queue.annotations.get(WEIGHTS, "")
    if path and weights and not path.startswith(ROOT_QUEUE):
        changes.append(change("metadata", "annotations", HIERARCHY, value=f"{ROOT_QUEUE}/{path}"))
        changes.append(change("metadata", "annotations", WEIGHTS, value=f"1/{weights}"))
    spec = section(attributes.object, "spec")
    if not spec and not isinstance((attributes.object or {}).get("spec"), dict):
        changes.append(change("spec", value={}))
    if spec.get("reclaimable") is None:
        changes.append(change("spec", "reclaimable", value=True))
    if not spec.get("weight"):
        changes.append(change("spec", "weight", value=1))
    return ReviewAnswer(changes=tuple(changes)) if changes else ALLOWED


def validate_queue(attributes: Attributes, reader: Reader, settings: Settings) -> ReviewAnswer:
    if attributes.operation == DELETE:
        return _validate_deletion(attributes.name, reader, settings)
    queue = read(Queue, attributes.object)
    if isinstance(queue, ReviewAnswer):
        return queue
    old = read(Queue, attributes.old) if attributes.operation != CREATE else None
    if isinstance(old, ReviewAnswer):
        return old
    if problems := queue_problems(queue, attributes.object or {}, reader):
        return refuse_all(problems)
    moved = old is None or old.spec.parent != queue.spec.parent
    if moved and queue.name == ROOT_QUEUE and has_inner_parent(queue):
        return deny("the root queue cannot have a parent")
    if moved and has_inner_parent(queue):
        problem = parent_problem(queue, reader, max_depth=settings.max_queue_depth)
        if problem:
            return deny(problem)
    resized = old is None or _resources(old) != _resources(queue)
    if queue.name == ROOT_QUEUE:
        frozen = old is not None and resized and settings.protects_root
        return deny("capability, deserved and guarantee of the root queue cannot be changed") if frozen else ALLOWED
    return refuse_all(sharing_problems(queue, reader)) if moved or resized else ALLOWED


def queue_problems(queue: Queue, value: JSON, reader: Reader) -> list[str]:
    """What is wrong with the object by itself, apart from its place in the tree."""
    body = Field(value, BODY)
    spec = body.at("spec")
    _check_quantities(spec)
    _check_order(queue, spec)
    state = body.at("status", "state")
    if state.as_text() and state.value not in STATES:
        state.invalid(f"queue state must be in {list(STATES)}")
    _check_hierarchy(queue, body.at("metadata", "annotations"), reader)
    return [str(error) for error in body.errors]


def _check_quantities(spec: Field) -> None:
    for owner, name in ((spec, "capability"), (spec, "deserved"), (spec.at("guarantee"), "resource")):
        for resource, place in owner.entries(name):
            amount = place.as_quantity()
            if amount is not None:
                check_amount(place, resource, amount)


def _check_order(queue: Queue, spec: Field) -> None:
    """guarantee <= deserved <= capability; where deserved is missing, the guarantee counts for it."""
    capability, stated = amounts(queue.spec.capability), amounts(queue.spec.deserved)
    guarantee = amounts(guaranteed_quantities(queue))
    place = spec.at("deserved")
    for resource, amount in sorted(guarantee.items()):
        if resource in stated and stated[resource] < amount:
            detail = f"deserved {resource} must be >= guarantee ({amount})"
            place.index(resource).invalid(detail, str(stated[resource]))
        elif resource not in stated and resource in capability and amount > capability[resource]:
            detail = f"guarantee {resource} must be <= capability ({capability[resource]})"
            spec.at("guarantee", "resource").index(resource).invalid(detail, str(amount))
    for resource, amount in sorted(stated.items()):
        if resource in capability and amount > capability[resource]:
            detail = f"deserved {resource} must be <= capability ({capability[resource]})"
            place.index(resource).invalid(detail, str(amount))


def _check_hierarchy(queue: Queue, annotations: Field, reader: Reader) -> None:
    path, weights = queue.annotations.get(HIERARCHY, ""), queue.annotations.get(WEIGHTS, "")
    if not path and not weights:
        return
    place = annotations.index(HIERARCHY)
    parts, shares = path.split("/"), weights.split("/")
    if len(parts) != len(shares):
        place.invalid(f"{HIERARCHY} must have the same length with {WEIGHTS}", path)
    for share in shares:
        if not NUMBER.fullmatch(share) or not isfinite(float(share)):
            annotations.index(WEIGHTS).invalid(f"the weight {share!r} is not a number", weights)
        elif float(share) <= 0:
            annotations.index(WEIGHTS).invalid(f"the weight {share} must be larger than 0", weights)
    below = [q.name for q in reader.all(Queue) if q.name != queue.name and _lies_below(q, path)] if path else []
    if below:
        place.invalid(f"the path {path} of queue {queue.name} has the queues {', '.join(below[:10])} below it", path)


def _lies_below(queue: Queue, path: str) -> bool:
    return queue.annotations.get(HIERARCHY, "").startswith(f"{path}/")


def _validate_deletion(name: str, reader: Reader, settings: Settings) -> ReviewAnswer:
    if name in (DEFAULT_QUEUE, ROOT_QUEUE):
        return deny(f"`{name}` queue can not be deleted")
    queue = reader.get(Queue, Key("", name))
    if queue is None:
        return deny(f"queue {name} does not exist")
    pods = allocated_pods(queue)
    if settings.checks_allocated_pods and pods:
        return deny(f"queue {name} can not be deleted because it has {pods} allocated pods")
    children = [child.name for child in children_outside_cycles(queue, reader)]
    if children:
        return deny(
            f"queue {name} can not be deleted because it has {len(children)} child queues: {', '.join(children)}"
        )
    return ALLOWED


def _resources(queue: Queue) -> tuple[object, ...]:
    guarantee = amounts(guaranteed_quantities(queue))
    return amounts(queue.spec.capability), amounts(queue.spec.deserved), guarantee
