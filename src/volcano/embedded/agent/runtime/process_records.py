"""Reads the supervisor's process records as the lifecycle needs them. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from volcano.embedded.agent.containers.container_attempt import split_id
from volcano.embedded.agent.lifecycle.pod_events import EXIT_CODE_SIGKILL, ContainerEnded, FoundContainer
from volcano.embedded.agent.lifecycle.resume import LOST_MESSAGE, LOST_REASON
from volcano.embedded.agent.processes.supervisor_protocol import ProcessRecord


def is_live(record: ProcessRecord) -> bool:
    return record["exit_code"] is None and not record["is_lost"]


def started_at(record: ProcessRecord) -> datetime:
    return datetime.fromtimestamp(record["started"], UTC)


def found_container(record: ProcessRecord) -> FoundContainer:
    """The container that the record is about, with its end if it has ended."""
    _, name, attempt = split_id(record["container"])
    ended = None if is_live(record) else ended_of(record)
    return FoundContainer(name, attempt, started_at(record), ended)


def ended_of(record: ProcessRecord) -> ContainerEnded:
    """How a container ended that is no longer live; a container lost with its supervisor counts as killed."""
    started = started_at(record)
    finished = datetime.fromtimestamp(record["finished"] or record["started"], UTC)
    if record["is_lost"]:
        return ContainerEnded(EXIT_CODE_SIGKILL, started, finished, LOST_REASON, LOST_MESSAGE)
    return ContainerEnded(record["exit_code"] or 0, started, finished, "OOMKilled" if record["oom_killed"] else "")
