"""`vcctl job`: run, list, suspend, resume, delete."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable

from volcano.api.errors import AlreadyExists, ApiError
from volcano.api.meta import JSON, Key
from volcano.api.quantity import parse_quantity
from volcano.api.resource_types import ResourceType, find_resource_type
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.formats import labels_of, local_date, padded, parse_resource_list, utc_now
from volcano.cli.job_list_table import terminal_table
from volcano.cli.output import follow, qualified_name, show
from volcano.cli.resources import JOBS

COLUMNS = (
    ("Creation", 15), ("Phase", 12), ("JobType", 12), ("Replicas", 12), ("Min", 6), ("Pending", 10), ("Running", 10),
    ("Succeeded", 12), ("Failed", 10), ("Unknown", 12), ("RetryCount", 10),
)  # fmt: skip
JOB_TYPE_LABEL = "volcano.sh/job-type"


# -- run ----------------------------------------------------------------------------------------------------------
def run(called: Called) -> int:
    connection, values = connect(called), called.values
    if not values["name"] and not values["filename"]:
        raise Failed("job name cannot be left blank")
    described = described_job(called)
    if values["filename"]:
        for flag, stated in (("time", "spec.runningEstimate"), ("queue", "spec.queue")):
            if values[flag]:
                raise Failed(f"--{flag}: a job of a file states its own {stated}")
        return _run_file(connection, values["filename"], values["namespace"], values["dry-run"])
    return create_or_try(connection, described, values["namespace"], values["dry-run"])


def create_or_try(connection: ApiConnection, body: JSON, namespace: str, dry_run: str) -> int:
    """Submit, or with `--dry-run=schedule` only ask what would happen."""
    if dry_run not in ("", "schedule"):
        raise Failed(f"--dry-run={dry_run}: only `schedule` is known")
    if dry_run:
        from volcano.cli.dry_run import report

        return report(connection, body)
    create(connection, body, namespace)
    return 0


def described_job(called: Called) -> JSON:
    """The Job that the flags describe: one task, one container."""
    values = called.values
    requests, limits = parse_resource_list(values["requests"]), parse_resource_list(values["limits"])
    if "limits" not in called.given:
        limits = {name: _larger(amount, requests.get(name, amount)) for name, amount in limits.items()}
    resources: JSON = {}
    if limits:
        resources["limits"] = limits
    if requests:
        resources["requests"] = requests
    container = {
        "name": values["name"],
        "image": values["image"],
        "imagePullPolicy": "IfNotPresent",
        "resources": resources,
    }
    template = {
        "metadata": {"name": values["name"], "labels": {"job.volcano.sh": values["name"]}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    spec: JSON = {
        "minAvailable": values["min"],
        "schedulerName": values["scheduler"],
        "tasks": [{"replicas": values["replicas"], "template": template}],
    }
    if values["queue"]:
        spec["queue"] = values["queue"]
    if values["time"]:
        spec["runningEstimate"] = time_limit(values["time"])
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {"name": values["name"], "namespace": values["namespace"]},
        "spec": spec,
    }


def _larger(limit: str, request: str) -> str:
    """The limit where it was not given: the usual one, unless more is requested."""
    return request if parse_quantity(request) > parse_quantity(limit) else limit


def time_limit(text: str) -> str:
    from volcano.api.durations import format_duration
    from volcano.api.jobs.estimates import parse_time_limit

    try:
        return format_duration(parse_time_limit(text))
    except ValueError as error:
        raise Failed(f"--time {text}: {error}") from error


def _run_file(connection: ApiConnection, path: str, namespace: str, dry_run: str) -> int:
    """Every object of the file in its order: Jobs are submitted, others are made or brought up to date."""
    if ".yaml" not in path and ".yml" not in path:
        raise Failed("only support yaml file")
    from volcano.cli.manifest_files import read_objects

    documents = read_objects(path)
    if not documents:
        raise Failed(f"failed to decode file, err: {path} holds no object")
    unknown = [each["kind"] for each in documents if _resource_of(each) is None]
    if unknown:
        raise Failed(f"failed to decode file, err: {path}: unknown kind {unknown[0]}")
    code = 0
    for document in documents:
        if document["kind"] == JOBS.kind and _resource_of(document) is JOBS:
            document.setdefault("metadata", {}).setdefault("namespace", namespace)
            code = max(code, create_or_try(connection, document, namespace, dry_run))
        elif not dry_run:
            _apply(connection, document, namespace)
    return code


def _resource_of(document: JSON) -> ResourceType | None:
    group, _, version = document["apiVersion"].rpartition("/")
    found = find_resource_type(group, document["kind"])
    return found if found is not None and found.version == version else None


def _apply(connection: ApiConnection, document: JSON, namespace: str) -> None:
    resource = _resource_of(document)
    assert resource is not None, "unknown kinds have been refused"
    metadata = document.setdefault("metadata", {})
    if resource.namespaced:
        metadata.setdefault("namespace", namespace)
    name = qualified_name(resource, document)
    try:
        connection.attempt(connection.client.create(resource, document))
        say(f"{name} created")
    except AlreadyExists:
        key = Key(metadata.get("namespace", ""), metadata["name"])
        connection.do(
            connection.client.patch(resource, key, document, kind="apply", fieldManager="vcctl", force="true")
        )
        say(f"{name} configured")
    except ApiError as error:
        raise Failed(error.message) from error


def create(connection: ApiConnection, body: JSON, namespace: str) -> None:
    stated = body["metadata"].get("namespace") or namespace
    if stated != namespace:
        raise Failed(
            f"the namespace of the provided object does not match the namespace sent on the request: "
            f"{stated!r} != {namespace!r}".replace("'", '"')
        )
    connection.create(JOBS, body)
    say(f"run job {body['metadata'].get('name', '')} successfully")


# -- list ---------------------------------------------------------------------------------------------------------
def list_jobs(called: Called) -> None:
    connection, values = connect(called), called.values
    everywhere = values["all-namespaces"]
    namespace = "" if everywhere else values["namespace"]
    selector = {"labelSelector": values["labels"]} if values["labels"] else {}
    jobs, revision = connection.list_at(JOBS, namespace, **selector)

    def wanted(job: JSON) -> bool:
        return is_wanted(job, values["scheduler"], values["queue"], values["selector"])

    def table(shown: list[JSON]) -> str:
        is_plain = not (values["output"] or values["watch"] or values["priority"] or values["start"])
        if sys.stdout.isatty() and is_plain:
            width = shutil.get_terminal_size().columns
            return terminal_table(shown, utc_now(), width=width, everywhere=everywhere)
        listed = job_table(shown, shown, everywhere=everywhere)
        if not (values["priority"] or values["start"]):
            return listed
        from volcano.cli.expected_starts import with_priorities, with_starts

        listed = with_priorities(connection, shown, listed) if values["priority"] else listed
        return with_starts(connection, shown, listed) if values["start"] else listed

    def changed(job: JSON) -> None:
        if wanted(job):
            say(job_table([job], [*jobs, job], everywhere=everywhere).splitlines()[1])

    def wide(shown: list[JSON]) -> str:
        return wide_table(shown, job_table(shown, shown, everywhere=everywhere))

    show(called, JOBS, [job for job in jobs if wanted(job)], table, wide)
    follow(called, connection, JOBS, namespace, revision, changed)


def wide_table(jobs: list[JSON], table: str) -> str:
    """The table with the queue, the scheduler and what the job waits for."""
    header, *rows = table.splitlines()
    queues = max([len("Queue"), *(len(job["spec"].get("queue", "")) for job in jobs)]) + 3
    lines = [f"{header}  {'Queue':<{queues}}Message"]
    for job, row in zip(jobs, rows):
        state = (job.get("status") or {}).get("state") or {}
        lines.append(
            f"{row}  {job['spec'].get('queue', ''):<{queues}}{state.get('message') or state.get('reason') or ''}"
        )
    return "\n".join(lines)


def is_wanted(job: JSON, scheduler: str, queue: str, part_of_name: str) -> bool:
    spec = job.get("spec", {})
    return (
        (not scheduler or spec.get("schedulerName") == scheduler)
        and (not queue or spec.get("queue") == queue)
        and part_of_name in job["metadata"]["name"]
    )


def job_table(jobs: list[JSON], measured: list[JSON], *, everywhere: bool) -> str:
    """The table; column widths follow `measured`, which may be more than is shown."""
    headers = ["Name", *(name for name, _ in COLUMNS)]
    widths = [_widest("Name", (j["metadata"]["name"] for j in measured)), *(width for _, width in COLUMNS)]
    if everywhere:
        headers.insert(0, "Namespace")
        widths.insert(0, _widest("Namespace", (j["metadata"].get("namespace", "") for j in measured)))
    lines = [padded(headers, widths)]
    for job in jobs:
        cells = [job["metadata"]["name"], *_cells(job)]
        lines.append(padded([job["metadata"].get("namespace", ""), *cells] if everywhere else cells, widths))
    return "\n".join(lines)


def _widest(header: str, values: Iterable[str]) -> int:
    return max([len(header), *(len(value) for value in values)]) + 3


def _cells(job: JSON) -> list[object]:
    status = job.get("status") or {}
    return [
        local_date(job["metadata"].get("creationTimestamp")),
        (status.get("state") or {}).get("phase", ""),
        labels_of(job).get(JOB_TYPE_LABEL) or "Batch",
        sum(task.get("replicas", 0) for task in job.get("spec", {}).get("tasks") or ()),
        status.get("minAvailable", 0),
        *(status.get(name, 0) for name in ("pending", "running", "succeeded", "failed", "unknown", "retryCount")),
    ]


# -- suspend, resume, delete --------------------------------------------------------------------------------------
def suspend(called: Called) -> None:
    from volcano.cli.bus_commands import ask_for
    from volcano.cli.named_jobs import for_each_job

    connection = connect(called)
    for_each_job(called, connection, "suspend", lambda place, name: ask_for(connection, JOBS, place, name, "AbortJob"))


def resume(called: Called) -> None:
    from volcano.cli.bus_commands import ask_for
    from volcano.cli.named_jobs import for_each_job

    connection = connect(called)
    for_each_job(called, connection, "resume", lambda place, name: ask_for(connection, JOBS, place, name, "ResumeJob"))


def delete(called: Called) -> None:
    from volcano.cli.named_jobs import for_each_job

    connection = connect(called)

    def remove(namespace: str, name: str) -> None:
        connection.delete(JOBS, namespace, name)
        say(f"delete job {name} successfully")

    for_each_job(called, connection, "delete", remove)
