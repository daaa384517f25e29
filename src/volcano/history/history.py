"""History: the read side, for code in the same process. Every question names the namespaces that its asker may see.

Clients of another process ask over HTTP (`serving`), and get the same records.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from volcano.api.history_records import (
    EvictionRecord,
    GapRecord,
    JobCount,
    JobPage,
    JobStory,
    NodeSample,
    PastMoment,
    PastPod,
    QueueSample,
    UsageRow,
)
from volcano.history import queries
from volcano.history.database import Database
from volcano.history.questions import (
    EvictionQuestion,
    JobQuestion,
    Namespaces,
    SampleQuestion,
    UsageQuestion,
)
from volcano.history.usage import usage
from volcano.machinery.clock import Clock

T = TypeVar("T")


class History:
    """Answers from the database, off the event loop."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def jobs(self, question: JobQuestion) -> JobPage:
        """A page of jobs, filtered and sorted; with `at` as they were then."""
        return await self._ask(lambda database: queries.jobs(database, question))

    async def job_counts(self, question: JobQuestion, by: str) -> list[JobCount]:
        """How many of the jobs are in which group and phase; `by` is one of `GROUPS` or `label:KEY`."""
        return await self._ask(lambda database: queries.job_counts(database, question, by))

    async def story(self, uid: str, visible: Namespaces = None) -> JobStory | None:
        """One job with its states, pods (attempts and placements) and evictions."""
        return await self._ask(lambda database: queries.story(database, uid, visible))

    async def pods(
        self, *, job_uid: str = "", node: str = "", at: datetime | None = None, visible: Namespaces = None
    ) -> list[PastPod]:
        """Pods of a job or a node; with `at` those that held a node then."""
        return await self._ask(
            lambda database: queries.pods(database, job_uid=job_uid, node=node, at=at, visible=visible)
        )

    async def evictions(self, question: EvictionQuestion) -> list[EvictionRecord]:
        """Newest first."""
        return await self._ask(lambda database: queries.evictions(database, question))

    async def usage(self, question: UsageQuestion) -> list[UsageRow]:
        """By the asked groups, in their order."""
        now = self._clock.now()
        return await self._ask(lambda database: usage(database, question, now))

    async def queue_samples(self, question: SampleQuestion) -> list[QueueSample]:
        """Changes of queues in a time, oldest first, each valid until the next of its queue."""
        return await self._ask(lambda database: queries.queue_samples(database, question))

    async def node_samples(self, question: SampleQuestion) -> list[NodeSample]:
        """Changes of nodes in a time, oldest first, each valid until the next of its node."""
        return await self._ask(lambda database: queries.node_samples(database, question))

    async def moment(
        self, at: datetime, visible: Namespaces = None, *, with_nodes: bool = True, with_queues: bool = True
    ) -> PastMoment:
        """Everything at a past moment: counts of jobs by queue and phase, queues, nodes, gaps."""
        return await self._ask(
            lambda database: queries.moment(database, at, visible, with_nodes=with_nodes, with_queues=with_queues)
        )

    async def gaps(self, since: datetime) -> list[GapRecord]:
        """The times in which changes may be missing."""
        return await self._ask(lambda database: queries.gaps(database, since=since))

    async def namespaces(self) -> list[str]:
        """All that a recorded job was in."""
        return await self._ask(queries.namespaces)

    async def _ask(self, work: Callable[[Database], T]) -> T:
        return await self._clock.run(lambda: work(self._database))
