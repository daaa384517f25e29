"""extender: an HTTP service answers some points. The service layer gives the plugin a way to send requests.

A node's answer is asked for once for each role of a job and again when the node has changed, not for every single task.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from datetime import timedelta
from typing import Any, ClassVar, Final

import msgspec
import numpy as np

from volcano.api.meta import JSON
from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import BatchScore, Cause, Code, Vote
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Queue, Task
from volcano.scheduler.plugins.extender.bodies import job_body, node_body, queue_body, session_body, task_body

VERBS: Final = (
    "onSessionOpen",
    "onSessionClose",
    "predicate",
    "prioritize",
    "preemptable",
    "reclaimable",
    "queueOverused",
    "jobEnqueueable",
    "jobEnqueued",
    "jobReady",
    "allocateFunc",
    "deallocateFunc",
)
MAX_BODY_BYTES: Final = 10 * 2**20

Post = Callable[[str, bytes, timedelta], tuple[int, bytes]]
"""Sends a body to a URL and gives the status and the body of the answer; OSError when there is none in time."""


class NoAnswer(Exception):
    """The extender could not be asked, or answered with something else than it should."""


class Extender(Plugin):
    name = "extender"
    argument_names = frozenset(
        {
            "extender.urlPrefix",
            "extender.httpTimeout",
            "extender.ignorable",
            "extender.managedResources",
            *(f"extender.{verb}Verb" for verb in VERBS),
        }
    )
    _post: ClassVar[Post | None] = None  # none: no request is sent

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        read = option.arguments
        self._url = read.text("extender.urlPrefix", "").rstrip("/")
        timeout = read.duration("extender.httpTimeout")
        self._timeout = timeout if timeout is not None and timeout > timedelta(0) else timedelta(seconds=1)
        self._ignorable = read.flag("extender.ignorable", False)
        self._verbs = {verb: read.text(f"extender.{verb}Verb", "") for verb in VERBS}
        managed = read.get("extender.managedResources")
        self._managed = frozenset(str(name) for name in managed) if isinstance(managed, list) else frozenset()
        self._is_silent = type(self)._post is None or not self._url

    def open(self, session: Session) -> None:
        super().open(session)
        if self._asks("onSessionOpen"):
            try:
                self._ask("onSessionOpen", session_body(session))
            except NoAnswer:
                self._is_silent = not self._ignorable

    def close(self, session: Session) -> None:
        if self._asks("onSessionClose"):
            self._tell("onSessionClose", {})

    # -- asking ----------------------------------------------------------------------------------------------------
    def _asks(self, verb: str) -> bool:
        return not self._is_silent and bool(self._verbs[verb])

    def _ask(self, verb: str, body: JSON) -> JSON:
        url = f"{self._url}/{self._verbs[verb]}"
        post = type(self)._post
        assert post is not None  # or it would be silent
        try:
            status, answer = post(url, msgspec.json.encode(body), self._timeout)
        except OSError as error:
            raise NoAnswer(str(error)) from error
        if status != 200:
            raise NoAnswer(f"failed {self._verbs[verb]} with extender at URL {url}, code {status}")
        if len(answer) > MAX_BODY_BYTES:
            raise NoAnswer("http: request body too large")
        try:
            found = msgspec.json.decode(answer) if answer.strip() else {}
        except (msgspec.DecodeError, RecursionError) as error:
            raise NoAnswer(f"{url}: {error}") from error
        return found if isinstance(found, dict) else {}

    def _tell(self, verb: str, body: JSON) -> None:
        """What comes back does not matter."""
        try:
            self._ask(verb, body)
        except NoAnswer:
            return

    def _is_concerned(self, task: Task) -> bool:
        if not self._managed:
            return True
        containers = (*task.pod.spec.containers, *task.pod.spec.init_containers)
        return any(
            name in self._managed
            for container in containers
            for name in (*(container.resources.requests or ()), *(container.resources.limits or ()))
        )

    # -- nodes -----------------------------------------------------------------------------------------------------
    def sharing_key(self, task: Task) -> Hashable:
        return (task.job_id, task.role) if self._asks("predicate") and self._is_concerned(task) else None

    def node_filter(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        if not self._asks("predicate") or not self._is_concerned(task):
            return
        told: dict[int, tuple[Code, str] | None] = {}
        causes: dict[tuple[Code, str], Mask] = {}
        for entry, row in enumerate(nodes.rows.tolist()):
            if row not in told:
                told[row] = self._refusal(task, row)
            refusal = told[row]
            if refusal is not None:
                causes.setdefault(refusal, nodes.none())[entry] = True
        for (code, reason), refused in causes.items():
            yield Cause(refused, code, reason)

    def _refusal(self, task: Task, row: int) -> tuple[Code, str] | None:
        table = self.session.table
        try:
            answer = self._ask("predicate", {"task": task_body(task), "node": node_body(table, table.nodes[row])})
        except NoAnswer as error:
            return None if self._ignorable else (Code.ERROR, str(error))
        message, code = answer.get("status"), answer.get("code")
        if not isinstance(message, str) or not message:
            return None
        known = isinstance(code, int) and code in set(Code) and code != Code.SUCCESS
        return (Code(code) if known and isinstance(code, int) else Code.ERROR), message

    def batch_node_score(self, task: Task, nodes: NodeView) -> BatchScore:
        asked = self._asks("prioritize") and self._is_concerned(task)
        return BatchScore(nodes.zeros(), live=self._score if asked else None)

    def _score(self, task: Task, candidates: Mask) -> Column:
        table, score = self.session.table, np.zeros(len(candidates))
        nodes = [table.nodes[row] for row in np.flatnonzero(candidates).tolist()]
        try:
            bodies = [node_body(table, node) for node in nodes]
            answer = self._ask("prioritize", {"task": task_body(task), "nodes": bodies})
        except NoAnswer:
            return score
        scores = answer.get("nodeScore")
        if not answer.get("errorMessage") and isinstance(scores, dict):
            for node in nodes:
                score[node.row] = _number(scores.get(node.name))
        return score

    # -- victims ---------------------------------------------------------------------------------------------------
    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task] | None:
        return self._victims("preemptable", preemptor, candidates)

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task] | None:
        return self._victims("reclaimable", reclaimer, candidates)

    def _victims(self, verb: str, evictor: Task, candidates: list[Task]) -> list[Task] | None:
        if not self._asks(verb) or not self._is_concerned(evictor):
            return None
        try:
            answer = self._ask(
                verb, {"evictor": task_body(evictor), "evictees": [task_body(task) for task in candidates]}
            )
        except NoAnswer:
            return []
        if answer.get("status") == Vote.ABSTAIN:
            return None
        named = answer.get("victims")
        uids = {item.get("UID") for item in named if isinstance(item, dict)} if isinstance(named, list) else set()
        return [task for task in candidates if task.uid in uids]

    # -- jobs and queues -------------------------------------------------------------------------------------------
    def job_enqueueable(self, job: Job) -> Vote:
        if not self._asks("jobEnqueueable"):
            return Vote.ABSTAIN
        try:
            status = _number(self._ask("jobEnqueueable", {"job": job_body(job)}).get("status"))
        except NoAnswer:
            return Vote.PERMIT if self._ignorable else Vote.REJECT
        return Vote(int(np.sign(status)))

    def job_enqueued(self, job: Job) -> None:
        if self._asks("jobEnqueued"):
            self._tell("jobEnqueued", {"job": job_body(job)})

    def job_ready(self, job: Job) -> bool:
        if not self._asks("jobReady"):
            return True
        try:
            return self._ask("jobReady", {"job": job_body(job)}).get("status") is True
        except NoAnswer:
            return not self._ignorable

    def overused(self, queue: Queue) -> bool:
        if not self._asks("queueOverused"):
            return False
        try:
            return self._ask("queueOverused", {"queue": queue_body(queue)}).get("overused") is True
        except NoAnswer:
            return not self._ignorable

    # -- what happened ---------------------------------------------------------------------------------------------
    def on_allocate(self, task: Task) -> str | None:
        if not self._asks("allocateFunc") or not self._is_concerned(task):
            return None
        try:
            objection = self._ask("allocateFunc", {"task": task_body(task)}).get("errorMessage")
        except NoAnswer as error:
            return None if self._ignorable else str(error)
        return str(objection) if objection else None

    def on_deallocate(self, task: Task) -> None:
        if self._asks("deallocateFunc") and self._is_concerned(task):
            self._tell("deallocateFunc", {"task": task_body(task)})


def reaching(post: Post) -> type[Extender]:
    """The plugin with a way to reach extenders."""
    return type("ReachingExtender", (Extender,), {"_post": staticmethod(post)})


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
