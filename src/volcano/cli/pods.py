"""`vcctl pod list`: the pods of Volcano jobs, as `kubectl get pods` shows them."""

from __future__ import annotations

from datetime import datetime

from volcano.api.ages import age
from volcano.api.meta import JSON
from volcano.api.pods.state import summarize
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.formats import labels_of, padded, parse_time, utc_now
from volcano.cli.output import follow, show
from volcano.cli.resources import PODS

JOB_LABEL = "volcano.sh/job-name"
QUEUE_LABEL = "volcano.sh/queue-name"
QUEUE_ANNOTATION = "scheduling.volcano.sh/queue-name"


def list_pods(called: Called) -> None:
    connection, values = connect(called), called.values
    namespace = "" if values["all-namespaces"] else values["namespace"]
    _, revision = connection.list_at(PODS, namespace, limit="1") if values["watch"] else ([], "")
    pods = _chosen(connection, namespace, job=values["job"], queue=values["queue"])
    pods.sort(key=lambda pod: (pod["metadata"].get("namespace", ""), pod["metadata"]["name"]))

    def table(shown: list[JSON]) -> str:
        return _table(shown, utc_now(), everywhere=values["all-namespaces"])

    def changed(pod: JSON) -> None:
        if _is_wanted(pod, job=values["job"], queue=values["queue"]):
            say(table([pod]).splitlines()[1])

    show(called, PODS, pods, table, lambda shown: _wide_table(shown, table(shown)))
    follow(called, connection, PODS, namespace, revision, changed)


def _is_wanted(pod: JSON, *, job: str, queue: str) -> bool:
    labels, annotations = labels_of(pod), pod["metadata"].get("annotations") or {}
    if job:
        return labels.get(JOB_LABEL) == job
    if queue:
        return queue in (labels.get(QUEUE_LABEL), annotations.get(QUEUE_ANNOTATION))
    return JOB_LABEL in labels


def _wide_table(pods: list[JSON], table: str) -> str:
    header, *rows = table.splitlines()
    lines = [f"{header}{'IP':<18}Node"]
    for pod, row in zip(pods, rows):
        address = (pod.get("status") or {}).get("podIP") or "<none>"
        lines.append(f"{row}{address:<18}{(pod.get('spec') or {}).get('nodeName') or '<none>'}")
    return "\n".join(lines)


def _chosen(connection: ApiConnection, namespace: str, *, job: str, queue: str) -> list[JSON]:
    if job:
        pods = connection.list(PODS, namespace, labelSelector=f"{JOB_LABEL} in ({job})")
        others = [pod for pod in pods if labels_of(pod).get(QUEUE_LABEL, queue) != queue]
        if queue and others:
            raise Failed(f"the input vcjob {job} does not match the queue {queue}")
        return pods
    if not queue:
        return connection.list(PODS, namespace, labelSelector=JOB_LABEL)
    labelled = connection.list(PODS, namespace, labelSelector=f"{QUEUE_LABEL}={queue}")
    known = {pod["metadata"]["uid"] for pod in labelled}
    annotated = [
        pod
        for pod in connection.list(PODS, namespace)
        if (pod["metadata"].get("annotations") or {}).get(QUEUE_ANNOTATION) == queue
    ]
    return labelled + [pod for pod in annotated if pod["metadata"]["uid"] not in known]


def _table(pods: list[JSON], now: datetime, *, everywhere: bool) -> str:
    headers = ["Name", "Ready", "Status", "Restart", "Age"]
    rows = [_row(pod, now) for pod in pods]
    if everywhere:
        headers.insert(0, "Namespace")
        for row, pod in zip(rows, pods):
            row.insert(0, pod["metadata"].get("namespace", ""))
    widths = [max(len(header) + 2, max(len(cell) for cell in column) + 8) for header, *column in zip(headers, *rows)]
    return "\n".join(padded(row, widths) for row in (headers, *rows))


def _row(pod: JSON, now: datetime) -> list[str]:
    summary = summarize(pod, counts_failures=False)
    created = parse_time(pod["metadata"].get("creationTimestamp"))
    return [
        pod["metadata"]["name"],
        summary.ready_text,
        summary.state,
        summary.restarts.text(now),
        age(created, now),
    ]
