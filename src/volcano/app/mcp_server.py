"""The tools of `volcano mcp` as the Model Context Protocol describes them: names, typed arguments, what each is for.

Imports the package mcp, which the extra volcano[mcp] brings. cli.cluster_reads has the answers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, Any, Final, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from volcano import __version__
from volcano.api.batch import Phase
from volcano.api.meta import JSON
from volcano.cli.cluster_reads import MAX_JOBS, MAX_MANIFEST_CHARACTERS, ClusterReads
from volcano.cli.failures import Failed

INSTRUCTIONS: Final = """\
Reads a Volcano batch cluster with the rights of the kubeconfig that the server was started with; nothing is changed.
Begin with list_jobs or queue_tree. explain says why a job waits and which changes would let it run.
past_jobs and job_history know jobs that are gone. usage sums CPU-, memory- and GPU-hours. dry_run says where a Job
would be placed now, without submitting it."""
MAX_NAME_CHARACTERS: Final = 253

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_CHARACTERS)]
Namespace = Annotated[str, Field(min_length=1, max_length=63, description="The namespace.")]
AnyNamespace = Annotated[str, Field(max_length=63, description="Only of this namespace; empty for all.")]
Queue = Annotated[str, Field(max_length=MAX_NAME_CHARACTERS, description="Only of this queue; empty for all.")]
User = Annotated[str, Field(max_length=512, description="Only of this submitter; empty for all.")]
Limit = Annotated[int, Field(ge=1, le=MAX_JOBS, description="How many jobs the answer has at most.")]
Moment = Annotated[
    str,
    Field(max_length=64, description="A time: 2026-01-31, 2026-01-31T12:00, today, now, or how long ago: 90m, 8h, 2d."),
]
AnyPhase = Annotated[Phase | None, Field(description="Only in this phase; left out for all.")]
State = Literal["", "waiting", "running", "ended"]


def mcp_server(reads: ClusterReads) -> MCPServer[Any]:
    """A server with all tools, each marked as read-only."""

    def list_jobs(
        namespace: AnyNamespace = "", queue: Queue = "", phase: AnyPhase = None, user: User = "", limit: Limit = 50
    ) -> JSON:
        """Jobs that are there now, the newest first: queue, submitter, phase, pods, age, what they wait for."""
        return reads.list_jobs(namespace, queue, phase or "", user, limit)

    def explain(name: Name, namespace: Namespace = "default", kind: Name = "vcjob") -> JSON:
        """Why a job (or pod, queue, podgroup, node, jobflow) waits, fails or has ended, and changes that let it run."""
        return reads.explain(kind, namespace, name)

    def queue_tree() -> JSON:
        """The queues as a tree: state, weight, and what each deserves, is guaranteed, may have, holds and borrows."""
        return reads.queue_tree()

    def usage(
        by: Annotated[
            str, Field(max_length=64, description="Some of day, queue, user, namespace, by commas.")
        ] = "queue",
        since: Moment = "1d",
        until: Moment = "now",
        namespace: AnyNamespace = "",
        queue: Queue = "",
        user: User = "",
        zone: Annotated[str, Field(max_length=64, description="Where days begin at midnight: Europe/Berlin.")] = "",
    ) -> JSON:
        """CPU-, memory- and GPU-hours, number of jobs, waits, and use against requests, from the history."""
        return reads.usage(by, since, until, namespace=namespace, queue=queue, user=user, zone=zone)

    def past_jobs(
        namespace: AnyNamespace = "",
        user: User = "",
        queue: Queue = "",
        state: State = "",
        phase: AnyPhase = None,
        since: Moment = "",
        until: Moment = "",
        limit: Limit = 50,
    ) -> JSON:
        """Jobs of the history, the newest first, also those that are gone: when they waited, ran and how they ended."""
        return reads.past_jobs(namespace, user, queue, phase or state, since, until, limit)

    def job_history(name: Name, namespace: Namespace = "default") -> JSON:
        """The newest job of a name in the history: states, pods with nodes and exit codes, evictions, gaps."""
        return reads.job_history(namespace, name)

    def dry_run(
        manifest: Annotated[
            str,
            Field(min_length=1, max_length=MAX_MANIFEST_CHARACTERS, description="One Job of Volcano, as YAML or JSON."),
        ],
        namespace: Namespace = "default",
    ) -> JSON:
        """Where the pods of a Job would be placed if it were submitted now, or why they would wait; submits nothing."""
        return reads.dry_run(manifest, namespace)

    server = MCPServer("volcano", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    marks = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    for tool in (list_jobs, explain, queue_tree, usage, past_jobs, job_history, dry_run):
        server.add_tool(_with_reasons(tool), annotations=marks)
    return server


def _with_reasons(tool: Callable[..., JSON]) -> Callable[..., JSON]:
    """What a command would print as its failure, the client gets as the error of the call."""

    @functools.wraps(tool)
    def answered(**arguments: Any) -> JSON:
        try:
            return tool(**arguments)
        except Failed as error:
            raise ToolError(str(error)) from error

    return answered
