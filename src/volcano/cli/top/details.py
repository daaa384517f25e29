"""What Enter shows in `vcctl top`: everything about one job, queue or node, as lines that scroll."""

from __future__ import annotations

from collections import Counter

from volcano.api.ages import age
from volcano.api.batch import JOB_NAME_KEY, TASK_SPEC_KEY
from volcano.api.meta import JSON
from volcano.api.pods.amounts import Amounts, amounts_of
from volcano.api.scheduling import deserved_amounts
from volcano.cli.formats import labels_of, parse_time
from volcano.cli.human_units import human
from volcano.cli.node import node_state
from volcano.cli.top.cluster_picture import ClusterPicture, allocatable
from volcano.cli.top.drawing import BOLD, DIM, Line, Span, Style, bar, plain, table_lines
from volcano.cli.top.sheets import (
    JOBS,
    PHASE_COLOURS,
    QUEUES,
    YELLOW,
    ZERO,
    Sheet,
    jobs_sheet,
    load_colour,
    ordered,
    pods_sheet,
)

LABEL_CELLS = 16
BAR_LENGTH = 20


def detail_lines(kind: str, key: tuple[str, str], picture: ClusterPicture, width: int, style: Style) -> list[Line]:
    """About the object of this kind and key; one line that says so when it is gone."""
    items = {JOBS: picture.jobs, QUEUES: picture.queues}.get(kind, picture.nodes)
    found = next((each for each in items if _key(each) == key), None)
    if found is None:
        return [[Span(f"{key[1]} is gone", YELLOW)]]
    if kind == JOBS:
        return _job(found, picture, width, style)
    if kind == QUEUES:
        return _queue(found, picture, width, style)
    return _node(found, picture, width, style)


def _key(item: JSON) -> tuple[str, str]:
    return str(item["metadata"].get("namespace", "")), str(item["metadata"]["name"])


def _job(job: JSON, picture: ClusterPicture, width: int, style: Style) -> list[Line]:
    spec, status, (namespace, name) = job.get("spec") or {}, job.get("status") or {}, _key(job)
    state, least = status.get("state") or {}, spec.get("minAvailable", 0)
    phase = state.get("phase") or "Pending"
    pods = [
        pod
        for pod in picture.pods
        if pod["metadata"].get("namespace") == namespace and _annotation(pod, JOB_NAME_KEY) == name
    ]
    lines = [
        _pair("Job", f"{namespace}/{name}", BOLD),
        _pair("Phase", phase, PHASE_COLOURS.get(phase, "")),
        _pair("Queue", spec.get("queue") or "default"),
        _pair("Starts with", f"{least} pod{'' if least == 1 else 's'} or more"),
        _pair("Age", age(parse_time(job["metadata"].get("creationTimestamp")), picture.at)),
    ]
    if state.get("message") or state.get("reason"):
        lines.append(_pair("Message", state.get("message") or state.get("reason"), YELLOW))
    lines += [[], *_tasks(spec, pods, style), [], *_table(pods_sheet(pods, picture), width, style)]
    if picture.events and picture.looked_at == (namespace, name):
        lines += [[], [Span("Events, newest first", BOLD)]]
        lines += [_event(event, picture) for event in reversed(picture.events)]
    return lines


def _tasks(spec: JSON, pods: list[JSON], style: Style) -> list[Line]:
    lines: list[Line] = [[Span("Tasks", BOLD)]]
    for task in spec.get("tasks") or ():
        mine = [pod for pod in pods if _annotation(pod, TASK_SPEC_KEY) == task.get("name")]
        phases = Counter((pod.get("status") or {}).get("phase") or "Pending" for pod in mine)
        wanted = int(task.get("replicas", 0))
        ready = phases["Running"] + phases["Succeeded"]
        counted = ", ".join(f"{count} {phase.lower()}" for phase, count in sorted(phases.items())) or "no pods"
        drawn = bar(ready / wanted if wanted else 0.0, BAR_LENGTH, PHASE_COLOURS["Running"], style)
        lines.append([_label(str(task.get("name", ""))), *drawn, Span(f" {ready}/{wanted}  {counted}")])
    return lines


def _event(event: JSON, picture: ClusterPicture) -> Line:
    when = age(parse_time(event.get("lastTimestamp")), picture.at)
    colour = YELLOW if event.get("type") == "Warning" else ""
    return [
        Span(f"{when:<6}", DIM),
        Span(f"{plain(event.get('reason', ''))}: {plain(event.get('message', ''))}", colour),
    ]


def _queue(queue: JSON, picture: ClusterPicture, width: int, style: Style) -> list[Line]:
    name, spec, status = queue["metadata"]["name"], queue.get("spec") or {}, queue.get("status") or {}
    guarantee = (spec.get("guarantee") or {}).get("resource")
    lines = [
        _pair("Queue", name, BOLD),
        _pair("State", status.get("state") or "-"),
        _pair("Weight", spec.get("weight") or 1),
        _pair("Priority", spec.get("priority") or 0),
        _pair("Parent", spec.get("parent") or "root"),
        _pair("Reclaimable", "no" if spec.get("reclaimable") is False else "yes"),
        [],
    ]
    amounts = {
        "deserved": amounts_of(deserved_amounts(spec.get("deserved"), guarantee)),
        "guaranteed": amounts_of(guarantee),
        "at most": amounts_of(spec.get("capability")),
    }
    taken = amounts_of(status.get("allocated"))
    for resource in sorted({*taken, *(each for many in amounts.values() for each in many)}):
        whole = amounts["at most"].get(resource) or picture.total.get(resource, ZERO)
        more = "".join(
            f", {word} {human(resource, many[resource])}" for word, many in amounts.items() if resource in many
        )
        lines.append([*_amount(resource, taken, {resource: whole}, style), Span(more)])
    return [*lines, [], *_table(jobs_sheet(picture, queue=name), width, style)]


def _node(node: JSON, picture: ClusterPicture, width: int, style: Style) -> list[Line]:
    name, have = node["metadata"]["name"], allocatable(node)
    taken = picture.used.get(name, {})
    lines = [_pair("Node", name, BOLD), _pair("State", node_state(node))]
    lines.append([])
    lines += [_amount(resource, taken, have, style) for resource in sorted(have) if have[resource]]
    pods = [pod for pod in picture.pods if (pod.get("spec") or {}).get("nodeName") == name]
    labels = ",".join(f"{key}={value}" for key, value in sorted(labels_of(node).items()))
    return [*lines, [], *_table(pods_sheet(pods, picture), width, style), [], _pair("Labels", labels or "-")]


def _amount(resource: str, taken: Amounts, have: Amounts, style: Style) -> Line:
    used, whole = taken.get(resource, ZERO), have[resource]
    share = used.nanos / whole.nanos if whole.nanos else 0.0
    drawn = bar(share, BAR_LENGTH, load_colour(share), style)
    return [_label(resource), *drawn, Span(f" {human(resource, used)}/{human(resource, whole)}")]


def _table(table: Sheet, width: int, style: Style) -> list[Line]:
    return table_lines(table.columns, ordered(table, table.first_sort), width, style)


def _pair(label: str, value: object, colour: str = "") -> Line:
    return [_label(label), Span(plain(str(value)), colour)]


def _label(text: str) -> Span:
    return Span(f"{plain(text):<{LABEL_CELLS}} ", DIM)


def _annotation(pod: JSON, name: str) -> str:
    return str((pod["metadata"].get("annotations") or {}).get(name, ""))
