"""Parents and children: a queue's parent exists, the tree is not too deep, and children share what their parent has."""

from __future__ import annotations

from volcano.admission import queue_resources as resources
from volcano.admission.queue_resources import Amounts, first_excess, total
from volcano.admission.review import Reader
from volcano.api.meta import Key
from volcano.api.quantity import Quantity
from volcano.api.scheduling import ROOT_QUEUE, Queue


def children_of(name: str, reader: Reader) -> list[Queue]:
    return [queue for queue in reader.where(Queue, "parent", name) if queue.name not in (name, ROOT_QUEUE)]


def children_outside_cycles(queue: Queue, reader: Reader) -> list[Queue]:
    """Its children without those that are also above it: a cycle must not keep its queues from being deleted."""
    above = {ancestor.name for ancestor in _ancestors(queue, reader)}
    return [child for child in children_of(queue.name, reader) if child.name not in above]


def has_inner_parent(queue: Queue) -> bool:
    """Whether its parent is a queue other than the root."""
    return queue.spec.parent not in ("", ROOT_QUEUE)


def parent_problem(queue: Queue, reader: Reader, *, max_depth: int) -> str:
    """Why the queue cannot have this parent; empty when it can."""
    name, parent_name = queue.name, queue.spec.parent
    if parent_name == name:
        return f"queue {name} cannot be the parent of itself"
    depth, ancestor_name = 1, parent_name
    while ancestor_name not in ("", ROOT_QUEUE):
        if ancestor_name == name:
            return f"queue {name} cannot be below queue {parent_name}, which is below queue {name} itself"
        depth += 1
        if depth > max_depth:
            return f"queue {name} would be deeper than the maximum depth of {max_depth} queue levels"
        ancestor = reader.get(Queue, Key("", ancestor_name))
        if ancestor is None:
            return f"queue {ancestor_name}, an ancestor of queue {name}, does not exist"
        ancestor_name = ancestor.spec.parent
    parent = reader.get(Queue, Key("", parent_name))
    if parent is not None and not children_of(parent_name, reader) and resources.allocated_pods(parent):
        pods = resources.allocated_pods(parent)
        return f"queue {parent_name} cannot be the parent of queue {name}: it has {pods} allocated pods and no children"
    return ""


def sharing_problems(queue: Queue, reader: Reader) -> list[str]:
    """Where capability, deserved or guarantee do not fit between the queue, its parent and its children."""
    problems: list[str] = []
    if has_inner_parent(queue):
        parent = reader.get(Queue, Key("", queue.spec.parent))
        if parent is None:
            return [f"parent queue {queue.spec.parent} of queue {queue.name} does not exist"]
        problems += _over_ancestors(queue, reader)
        siblings = [child for child in children_of(parent.name, reader) if child.name != queue.name]
        problems += _over_parent(parent, [*siblings, queue])
    children = children_of(queue.name, reader)
    if children:
        problems += _under_descendants(queue, children, reader)
        problems += _over_parent(queue, children)
    return problems


def _over_ancestors(queue: Queue, reader: Reader) -> list[str]:
    """Its capability is bounded by the nearest ancestor that bounds the resource at all."""
    problems = []
    ancestors = _ancestors(queue, reader)
    for resource, amount in sorted(resources.capability(queue).items()):
        bounds = ((above, resources.capability(above)) for above in ancestors)
        above, limit = next(((above, own[resource]) for above, own in bounds if resource in own), (None, None))
        if above is not None and limit is not None and amount.nanos > 0 and amount > limit:
            problems.append(
                f"queue {queue.name}: capability of {resource} ({amount}) exceeds the {limit} of its ancestor "
                f"{above.name}"
            )
    return problems


def _ancestors(queue: Queue, reader: Reader) -> list[Queue]:
    """From the parent upwards, the root left out; a cycle ends the walk."""
    found: dict[str, Queue] = {}
    name = queue.spec.parent
    while name not in ("", ROOT_QUEUE) and name not in found and name != queue.name:
        above = reader.get(Queue, Key("", name))
        if above is None:
            break
        found[name] = above
        name = above.spec.parent
    return list(found.values())


def _over_parent(parent: Queue, children: list[Queue]) -> list[str]:
    problems = []
    for what, of in (("guarantee", resources.guarantee), ("deserved", resources.deserved)):
        requested, available = total(map(of, children)), of(parent)
        resource = first_excess(requested, available)
        if resource is not None:
            problems.append(
                f"the children of queue {parent.name} have a total {what} of {requested[resource]} {resource}, which "
                f"exceeds its own {what} of {available.get(resource, resources.NONE)}"
            )
    return problems


def _under_descendants(queue: Queue, children: list[Queue], reader: Reader) -> list[str]:
    problems = []
    for resource, amount in sorted(resources.capability(queue).items()):
        largest = _largest_below(children, resource, reader)
        if largest is not None and amount < largest:
            problems.append(
                f"queue {queue.name}: capability of {resource} ({amount}) is below the {largest} of a descendant"
            )
    return problems


def _largest_below(children: list[Queue], resource: str, reader: Reader) -> Quantity | None:
    """The largest capability of its descendants, skipping queues that do not set it."""
    largest: Quantity | None = None
    seen: set[str] = set()
    waiting = list(children)
    while waiting:
        queue = waiting.pop()
        if queue.name in seen:
            continue
        seen.add(queue.name)
        own: Amounts = resources.capability(queue)
        if resource in own:
            largest = own[resource] if largest is None else max(largest, own[resource])
        else:
            waiting += children_of(queue.name, reader)
    return largest
