"""`vcctl job view` and `vjobs -n`: one job with everything about it, line by line as Volcano prints it."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

import msgspec

from volcano.api.ages import age
from volcano.api.errors import ApiError, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.quantity import format_quantity
from volcano.cli.accounting import story_text
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.formats import local_timestamp, parse_time, utc_now
from volcano.cli.named_jobs import for_each_job
from volcano.cli.past import past_connection
from volcano.cli.reserved_starts import described, reservation_of
from volcano.cli.resources import EVENTS, JOBS

TEMPLATE_ANNOTATIONS = (
    ("Cri . Cci . Io / Container - Type:", "cri.cci.io/container-type"),
    ("Kubernetes . Io / Availablezone:", "kubernetes.io/availablezone"),
    ("Network . Alpha . Kubernetes . Io / Network:", "network.alpha.kubernetes.io/network"),
)
COUNTERS = (
    ("Succeeded:", "succeeded"), ("Pending:", "pending"), ("Running:", "running"), ("Failed:", "failed"),
    ("Terminating:", "terminating"), ("Unknown:", "unknown"), ("RetryCount:", "retryCount"),
    ("Min Available:", "minAvailable"), ("Version:", "version"),
)  # fmt: skip


class Lines:
    """Text being written: two blanks a level, a TAB after the padded key."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def put(self, level: int, text: str) -> None:
        self._lines.append("  " * level + text)

    def pair(self, level: int, key: str, value: object, width: int = 0) -> None:
        self.put(level, f"{key:<{width}}\t{value}")

    def __str__(self) -> str:
        return "\n".join(self._lines)


def view(called: Called) -> None:
    view_job(called, conditions=True)


def view_job(called: Called, *, conditions: bool) -> None:
    connection = connect(called)

    def show(namespace: str, name: str) -> None:
        job = _present(called, connection, namespace, name)
        if job is None:
            return
        lines = Lines()
        _metadata(lines, job)
        _spec(lines, job.get("spec") or {})
        _status(lines, job.get("status") or {}, conditions=conditions)
        say(str(lines))
        reservation = reservation_of(connection, job) if _waits(job) else None
        if reservation is not None:
            say(f"Reservation:  {described(reservation)}")
        _events(connection, namespace, name)

    mandatory = "job name (specified by --name or -N) is mandatory to view a particular job"
    for_each_job(called, connection, "view", show, mandatory=mandatory)


def _present(called: Called, connection: ApiConnection, namespace: str, name: str) -> JSON | None:
    """The job; of one that is gone, its history is shown."""
    try:
        return connection.attempt(connection.client.get_json(JOBS, Key(namespace, name)))
    except NotFound as error:
        try:
            story = past_connection(called).newest(namespace, name)
        except Failed:
            story = None
        if story is None:
            raise Failed(error.message) from error
        say(story_text(story, utc_now()))
        return None
    except ApiError as error:
        raise Failed(error.message) from error


def _waits(job: JSON) -> bool:
    return ((job.get("status") or {}).get("state") or {}).get("phase", "") in ("", "Pending", "Inqueue")


def _metadata(lines: Lines, job: JSON) -> None:
    metadata = job["metadata"]
    for key, value in (
        ("Name:", metadata["name"]),
        ("Namespace:", metadata.get("namespace", "")),
        ("Labels:", _as_json(metadata.get("labels"))),
        ("Annotations:", _as_json(metadata.get("annotations"))),
        ("API Version:", ""),  # empty, as Volcano's typed client leaves them
        ("Kind:", ""),
    ):
        lines.pair(0, key, value, 12)
    lines.put(0, "Metadata:")
    for key, value in (
        ("Creation Timestamp:", local_timestamp(metadata.get("creationTimestamp"))),
        ("Generate Name:", metadata.get("generateName", "")),
        ("Generation:", metadata.get("generation", 0)),
        ("Resource Version:", metadata.get("resourceVersion", "")),
        ("UID:", metadata.get("uid", "")),
    ):
        lines.pair(1, key, value, 19)


def _spec(lines: Lines, spec: JSON) -> None:
    plugins = spec.get("plugins") or {}
    lines.put(0, "Spec:")
    lines.pair(1, "Min Available:", spec.get("minAvailable", 0), 19)
    lines.put(1, "Plugins:")
    for key, name in (("Env:", "env"), ("Ssh:", "ssh")):
        lines.pair(2, key, f"[{' '.join(plugins.get(name) or ())}]")
    lines.pair(1, "Scheduler Name:", spec.get("schedulerName", ""), 19)
    lines.put(1, "Tasks:")
    for task in spec.get("tasks") or ():
        lines.pair(2, "Name:", task.get("name", ""))
        lines.pair(2, "Replicas:", task.get("replicas", 0))
        lines.put(2, "Template:")
        _template(lines, task.get("template") or {})


def _template(lines: Lines, template: JSON) -> None:
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    annotations = metadata.get("annotations") or {}
    lines.put(3, "Metadata:")
    lines.put(4, "Annotations:")
    for key, annotation in TEMPLATE_ANNOTATIONS:
        lines.pair(5, key, annotations.get(annotation, ""), 44)
    lines.pair(4, "Creation Timestamp:", local_timestamp(metadata.get("creationTimestamp")))
    lines.put(3, "Spec:")
    lines.put(4, "Containers:")
    for container in spec.get("containers") or ():
        _container(lines, container)
    lines.put(4, "Image Pull Secrets:")
    for secret in spec.get("imagePullSecrets") or ():
        lines.pair(5, "Name:", secret.get("name", ""), 10)
    lines.pair(4, "Restart Policy:", spec.get("restartPolicy", ""), 18)


def _container(lines: Lines, container: JSON) -> None:
    lines.put(5, "Command:")
    for word in container.get("command") or ():
        lines.put(6, word)
    lines.pair(5, "Image:", container.get("image", ""))
    lines.pair(5, "Name: ", container.get("name", ""))
    lines.put(5, "Ports:")
    for port in container.get("ports") or ():
        lines.pair(6, "Container Port:", port.get("containerPort", 0), 15)
        lines.pair(6, "Name:", port.get("name", ""), 15)
    lines.put(5, "Resources:")
    resources = container.get("resources") or {}
    for title, amounts in (("Limits:", resources.get("limits")), ("Requests:", resources.get("requests"))):
        lines.put(6, title)
        lines.pair(7, "Cpu:   ", format_quantity((amounts or {}).get("cpu", 0)))
        lines.pair(7, "Memory:", format_quantity((amounts or {}).get("memory", 0)))
    lines.pair(6, "Working Dir:", container.get("workingDir", ""))


def _status(lines: Lines, status: JSON, *, conditions: bool) -> None:
    lines.put(0, "Status:")
    for key, field in COUNTERS:
        if status.get(field, 0) > 0:
            lines.pair(1, key, status[field], 14)
    lines.put(1, "State:")
    lines.pair(2, "Phase:", (status.get("state") or {}).get("phase", ""))
    controlled = status.get("controlledResources") or {}
    if controlled:
        lines.put(1, "Controlled Resources:")
        for key in sorted(controlled):
            lines.pair(2, f"{key}: ", controlled[key])
    if conditions and status.get("conditions"):
        lines.put(1, "Conditions:")
        lines.put(2, "Status\tTransitionTime")
        for each in status["conditions"]:
            lines.put(2, f"{each.get('status', '')} \t{local_timestamp(each.get('lastTransitionTime'))} ")


def _events(connection: ApiConnection, namespace: str, name: str) -> None:
    try:
        found = connection.attempt(connection.client.list_json(EVENTS, namespace)).get("items") or []
    except ApiError as error:
        print(f"{error.message}", file=sys.stderr)
        return
    events = [event for event in found if event["metadata"]["name"].startswith(f"{name}.")]
    if not events:
        say("Events: \t<none>")
        return
    say("Events:")
    rows: list[tuple[str, ...]] = [("Type", "Reason", "Age", "Form", "Message"), ("-------",) * 5]
    rows += [_event_row(event, utc_now()) for event in events]
    for kind, reason, when, source, message in rows:
        say(f"{kind:<15}\t{reason:<40}\t{when:<30}\t{source:<40}\t{message}\t")


def _event_row(event: JSON, now: datetime) -> tuple[str, ...]:
    first, last = parse_time(event.get("firstTimestamp")), parse_time(event.get("lastTimestamp"))
    when = age(first, now, whole_years=False)
    if event.get("count", 0) > 1:
        when = f"{age(last, now, whole_years=False)} (x{event['count']} over {when})"
    source = event.get("source") or {}
    form = source.get("component", "") + (f", {source['host']}" if source.get("host") else "")
    return event.get("type", ""), event.get("reason", ""), when, form, event.get("message", "").strip()


def _as_json(value: Any) -> str:
    return msgspec.json.encode(value, order="sorted").decode() if value else "<none>"
