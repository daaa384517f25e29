"""After the fact: how a job ended and what happened, in order, from conditions, events and pods."""

from __future__ import annotations

from typing import Any

from volcano.api.core import Event, Pod
from volcano.api.decode import decode_object
from volcano.scheduler.explain.story import ending_of, story_of


def an_event(time: str, reason: str, message: str, name: str = "demo-worker-0", kind: str = "Pod") -> Event:
    body = {
        "metadata": {"name": f"{name}-{time}", "namespace": "default"},
        "involvedObject": {"kind": kind, "name": name},
        "reason": reason,
        "message": message,
        "lastTimestamp": f"2026-01-01T{time}Z",
    }
    return decode_object(Event, body)


def a_job(phase: str, **status: Any) -> dict[str, Any]:
    conditions = [
        {"status": "Pending", "lastTransitionTime": "2026-01-01T10:00:00Z"},
        {"status": "Running", "lastTransitionTime": "2026-01-01T10:00:05Z"},
    ]
    state = {"phase": phase}
    return {
        "metadata": {"name": "demo"},
        "spec": {"maxRetry": 3, "tasks": [{"name": "worker", "replicas": 2}]},
        "status": {"state": state, "conditions": conditions, **status},
    }


def a_failed_pod(code: int) -> Pod:
    ended = {"exitCode": code, "reason": "Error", "finishedAt": "2026-01-01T10:01:00Z"}
    body = {
        "metadata": {"name": "demo-worker-1", "namespace": "default"},
        "spec": {"nodeName": "n1"},
        "status": {"phase": "Failed", "containerStatuses": [{"name": "c", "state": {"terminated": ended}}]},
    }
    return decode_object(Pod, body)


def test_the_story_is_told_in_order_with_who_was_evicted_for_whom() -> None:
    evicted = an_event("10:00:30", "Evict", "Pod is evicted, because of preempt, to make room for default/high-0")
    noise = an_event("10:00:20", "Pulled", "image is there")

    lines = story_of(a_job("Failed"), [a_failed_pod(3)], [noise, evicted])

    assert [line[11:] for line in lines] == [
        "10:00:00 Pending",
        "10:00:05 Running",
        "10:00:30 pod demo-worker-0 was evicted by preempt, to make room for default/high-0",
        "10:01:00 pod demo-worker-1: Error, exit code 3",
    ]


def test_a_failed_job_says_after_how_many_restarts_and_why() -> None:
    found = ending_of(a_job("Failed", retryCount=3), [a_failed_pod(3)], [], {"default/demo-worker-1": "no data"})

    assert str(found) == ("it failed after 3 restarts: exit code 3 (pod demo-worker-1); last line of its log: no data")


def test_a_completed_job_counts_its_pods_and_a_running_one_has_not_ended() -> None:
    assert str(ending_of(a_job("Completed", succeeded=2), [], [], {})) == "it completed: 2 of 2 pods succeeded"
    assert ending_of(a_job("Running"), [], [], {}) is None
    assert str(ending_of(a_job("Restarting", retryCount=1), [a_failed_pod(9)], [], {})).startswith(
        "it is restarting (1 of 3): exit code 9"
    )
