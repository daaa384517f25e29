"""What `volcano mcp` answers: the questions of vcctl and vacct as values, read-only, bounded, with the caller's rights.

Each question goes through the functions that the commands use. app.mcp_server describes them to clients.
"""

from __future__ import annotations

import itertools
from typing import Any, Final

import msgspec

from volcano.api.bounded_yaml import BoundedYamlError, load_yaml
from volcano.api.jobs.estimates import SUBMITTER_KEY
from volcano.api.meta import JSON
from volcano.cli.accounting import asked_states
from volcano.cli.connection import ApiConnection, connect_to
from volcano.cli.dry_run import simulated
from volcano.cli.explain import WITH_STARTS, ask, expected_start
from volcano.cli.explain_facts import gather
from volcano.cli.failures import Failed
from volcano.cli.formats import utc_now
from volcano.cli.job_list_table import HEADERS, job_cells
from volcano.cli.past import PastConnection, moment, past_at
from volcano.cli.permitted_changes import with_permitted_changes
from volcano.cli.queue_tree import allocatable_total, tree_lines
from volcano.cli.resources import JOBS, NODES, QUEUES
from volcano.cli.usage_report import asked_groups, report_zone

MAX_JOBS: Final = 200
"""Jobs in one answer."""
MAX_TREE_LINES: Final = 1000
MAX_MANIFEST_CHARACTERS: Final = 256 * 1024
MAX_ANSWER_BYTES: Final = 200_000
"""An answer that is larger is refused, with what would narrow it."""


class ClusterReads:
    """Every question reads the kubeconfig again, so that tokens may change; `Failed` says why there is no answer."""

    def __init__(self, kubeconfig: str = "", master: str = "", history_server: str = "") -> None:
        self._kubeconfig, self._master, self._history_server = kubeconfig, master, history_server

    def list_jobs(self, namespace: str, queue: str, phase: str, user: str, limit: int) -> JSON:
        """Jobs that are there now, the newest first."""
        found = [job for job in self._connection().list(JOBS, namespace) if _is_asked(job, queue, phase, user)]
        found.sort(key=lambda job: str(job["metadata"].get("creationTimestamp") or ""), reverse=True)
        now = utc_now()
        rows = [_listed(job, job_cells(job, now)) for job in found[: _count(limit)]]
        return bounded({"total": len(found), "jobs": rows}, "a smaller limit")

    def explain(self, kind: str, namespace: str, name: str) -> JSON:
        """Why something waits, fails or has ended, and what would let it run."""
        connection = self._connection()
        question = connection.do(gather(connection.client, kind, namespace, name))
        found = ask(connection, question)
        found = connection.do(with_permitted_changes(connection.client, found, question.get("object")))
        answer: JSON = msgspec.to_builtins(found)
        if question.get("kind", "") in WITH_STARTS:
            expected = expected_start(connection, found, namespace, name)
            answer |= {"expectedStart": msgspec.to_builtins(expected)} if expected is not None else {}
        return bounded(answer, "a question about one pod")

    def queue_tree(self) -> JSON:
        """The hierarchy of queues with their shares, as `vcctl queue tree` prints it."""
        connection = self._connection()
        queues = connection.list(QUEUES)
        lines = tree_lines(queues, allocatable_total(connection.list(NODES)))
        shown = list(itertools.islice(lines, MAX_TREE_LINES))
        return bounded({"queues": len(queues), "tree": shown, "isWhole": next(lines, None) is None}, "fewer queues")

    def usage(
        self, by: str, since: str, until: str, namespace: str = "", queue: str = "", user: str = "", zone: str = ""
    ) -> JSON:
        """CPU-, memory- and GPU-hours, waits and efficiency."""
        now = utc_now()
        asked = {"namespace": namespace, "queue": queue, "user": user, "zone": report_zone(zone)}
        rows = self._past().usage(
            by=",".join(asked_groups(by)), since=moment(since, now), until=moment(until, now), **asked
        )
        return bounded({"rows": msgspec.to_builtins(rows)}, "fewer groups or a shorter time")

    def past_jobs(self, namespace: str, user: str, queue: str, state: str, since: str, until: str, limit: int) -> JSON:
        """Jobs of the history, the newest first, also those that are gone."""
        now = utc_now()
        asked = {"namespace": namespace, "user": user, "queue": queue, **asked_states(state)}
        times = {"since": moment(since, now), "until": moment(until, now)}
        page = self._past().page(0, _count(limit), **asked, **times)
        return bounded({"total": page.total, "jobs": msgspec.to_builtins(page.jobs)}, "a smaller limit")

    def job_history(self, namespace: str, name: str) -> JSON:
        """One job with its states, pods, nodes and evictions."""
        story = self._past().newest(namespace, name)
        if story is None:
            raise Failed(f"the history has no job {name} in namespace {namespace}; past_jobs lists what it has")
        return bounded(msgspec.to_builtins(story), "past_jobs, which has no pods")

    def dry_run(self, manifest: str, namespace: str) -> JSON:
        """Where the pods of a Job would be placed now; nothing is submitted."""
        return bounded(
            msgspec.to_builtins(simulated(self._connection(), {"job": _job_of(manifest, namespace)})), "fewer pods"
        )

    def _connection(self) -> ApiConnection:
        return connect_to(self._kubeconfig, self._master)

    def _past(self) -> PastConnection:
        return past_at(self._connection(), self._history_server)


def bounded(answer: JSON, narrower: str) -> JSON:
    size = len(msgspec.json.encode(answer))
    if size > MAX_ANSWER_BYTES:
        raise Failed(f"the answer has {size} bytes, more than {MAX_ANSWER_BYTES}; ask for {narrower}")
    return answer


def _count(limit: int) -> int:
    if not 1 <= limit <= MAX_JOBS:
        raise Failed(f"limit: must be between 1 and {MAX_JOBS}")
    return limit


def _is_asked(job: JSON, queue: str, phase: str, user: str) -> bool:
    spec, state = job.get("spec") or {}, (job.get("status") or {}).get("state") or {}
    return (
        queue in ("", spec.get("queue") or "default")
        and phase.lower() in ("", str(state.get("phase") or "Pending").lower())
        and user in ("", (job["metadata"].get("annotations") or {}).get(SUBMITTER_KEY, ""))
    )


def _listed(job: JSON, cells: list[str]) -> dict[str, Any]:
    metadata = job["metadata"]
    names = (header.lower().replace(" ", "_") for header in HEADERS)
    user = (metadata.get("annotations") or {}).get(SUBMITTER_KEY, "")
    return {"namespace": metadata.get("namespace", ""), "user": user, **dict(zip(names, cells, strict=True))}


def _job_of(manifest: str, namespace: str) -> JSON:
    if len(manifest) > MAX_MANIFEST_CHARACTERS:
        raise Failed(f"manifest: has more than {MAX_MANIFEST_CHARACTERS} characters")
    try:
        job = load_yaml(manifest)
    except BoundedYamlError as error:
        raise Failed(f"manifest: is not YAML: {error}") from error
    if not isinstance(job, dict) or (job.get("apiVersion"), job.get("kind")) != (JOBS.api_version, JOBS.kind):
        raise Failed(f"manifest: must be one object of apiVersion {JOBS.api_version} and kind {JOBS.kind}")
    if not isinstance(job.setdefault("metadata", {}), dict) or not isinstance(job.get("spec"), dict):
        raise Failed("manifest: metadata and spec must be objects")
    job["metadata"].setdefault("name", "trial")
    job["metadata"].setdefault("namespace", namespace)
    return job
