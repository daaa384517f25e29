"""The Applier: what it sends for each step, what it retries, and what it reports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.unit.machinery.scripted_transport import ScriptedTransport, a_map, elapse
from volcano.api.core import ConfigMap, Pod, Secret
from volcano.api.errors import (
    AlreadyExists,
    BadRequest,
    Conflict,
    FieldError,
    Forbidden,
    InternalError,
    Invalid,
    NotFound,
    ServiceUnavailable,
    Timeout,
    TooManyRequests,
)
from volcano.api.meta import Key, OwnerReference
from volcano.api.scheme import resource_type
from volcano.machinery.apply import MAX_CONCURRENT_WRITES, Applier, Outcome, show_answers_in
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.events import EventRecorder
from volcano.machinery.plan import (
    Bind,
    Create,
    Delete,
    EnsureSecret,
    Evict,
    Found,
    Later,
    Look,
    Patch,
    Record,
    Ref,
    Step,
    Together,
)
from volcano.machinery.transport import Request, Response
from volcano.machinery.world import Mirror

MAPS, PODS = resource_type(ConfigMap), resource_type(Pod)
ALL, ONE = "/api/v1/namespaces/ns/configmaps", "/api/v1/namespaces/ns/configmaps/a"
POD = "/api/v1/namespaces/ns/pods/p"
CREATE = Create(MAPS, {"metadata": {"name": "a", "namespace": "ns"}})
TARGET = Ref(MAPS, Key("ns", "a"), uid="uid-a")
FRESH = Ref(MAPS, Key("ns", "a"), uid="uid-a", resource_version="7")


class Bench:
    """An Applier on virtual time, and what it did."""

    def __init__(self, **options: Any) -> None:
        self.transport, self.clock = ScriptedTransport(), VirtualClock()
        self._options = options
        self.seconds = 0.0

    def apply(self, *plan: Step) -> Outcome:
        async def main() -> Outcome:
            applier = Applier(Client(self.transport), self.clock, **self._options)
            outcome = await applier.apply(plan)
            self.seconds = asyncio.get_running_loop().time()
            return outcome

        return run_virtually(main())


@pytest.fixture
def bench() -> Bench:
    return Bench()


# -- retries ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "error",
    [
        TooManyRequests("slow down"),
        ServiceUnavailable("starting"),
        Timeout("late"),
        ConnectionError("no route"),
        TimeoutError("late"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_transient_failure_is_retried_with_growing_back_off(bench: Bench, error: Exception):
    bench.transport.answers("POST", ALL, error, error, error, a_map("a"))

    outcome = bench.apply(CREATE)

    assert outcome.ok and outcome.writes == 4
    assert bench.transport.times == pytest.approx([0.0, 0.1, 0.5, 2.1])


def test_a_transient_failure_is_reported_after_the_last_attempt(bench: Bench):
    bench.transport.answers("POST", ALL, ConnectionError("no route"))

    outcome = bench.apply(CREATE, Later(timedelta(1)))

    assert [str(failure) for failure in outcome.failures] == ["Create ConfigMap ns/a: no route"]
    assert len(bench.transport.requests) == 4
    assert outcome.later == [], "a failure ends the plan"


@pytest.mark.parametrize(("seconds", "waited"), [(7, 7.0), (3600, 30.0)])
def test_the_server_may_ask_for_a_pause_within_bounds(bench: Bench, seconds: int, waited: float):
    refused = Response(429, {"retry-after": str(seconds)}, msgspec.json.encode(TooManyRequests("wait").status()))
    bench.transport.answers("POST", ALL, refused, a_map("a"))

    assert bench.apply(CREATE).ok
    assert bench.seconds == pytest.approx(waited)


@pytest.mark.parametrize(
    "error",
    [Forbidden("no"), BadRequest("what"), InternalError("oops"), OSError("disk")],
    ids=lambda error: type(error).__name__,
)
def test_other_failures_are_not_retried_and_end_the_plan(bench: Bench, error: Exception):
    bench.transport.answers("POST", ALL, error)

    outcome = bench.apply(CREATE, CREATE)

    assert len(bench.transport.requests) == 1
    assert type(outcome.failures[0].error) is type(error)


# -- create ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(("exists_ok", "ok"), [(True, True), (False, False)])
def test_a_name_that_is_taken_is_fine_unless_the_step_says_otherwise(bench: Bench, exists_ok: bool, ok: bool):
    bench.transport.answers("POST", ALL, AlreadyExists.of("configmaps", "a"))

    assert bench.apply(Create(MAPS, CREATE.body, exists_ok=exists_ok)).ok is ok


def test_the_answer_to_a_write_is_in_the_mirror_before_the_next_decision():
    mirror = Mirror()
    bench = Bench(observe=show_answers_in(mirror, {MAPS: (ConfigMap,)}))
    bench.transport.answers("POST", ALL, a_map("a", version=3))

    bench.apply(CREATE)

    found = mirror.get(ConfigMap, Key("ns", "a"))
    assert found is not None and found.metadata.resource_version == "3"


@pytest.mark.parametrize("is_known", [True, False])
def test_an_object_being_deleted_is_shown_only_where_it_is_known(is_known: bool):
    mirror = Mirror()
    observe = show_answers_in(mirror, {MAPS: (ConfigMap,)})
    if is_known:
        observe(MAPS, msgspec.json.encode(a_map("a", version=1)))
    leaving = a_map("a", version=2)
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    observe(MAPS, msgspec.json.encode(leaving))

    found = mirror.get(ConfigMap, Key("ns", "a"))
    assert (found is not None and found.is_deleting) is is_known


def test_answers_that_cannot_be_read_or_are_of_other_kinds_are_left_out_of_the_mirror():
    mirror = Mirror()
    observe = show_answers_in(mirror, {MAPS: (ConfigMap,)})

    observe(MAPS, b'{"metadata": 5}')
    observe(PODS, msgspec.json.encode(a_map("a")))

    assert mirror.all(ConfigMap) == [] and mirror.all(Pod) == []


# -- patch -------------------------------------------------------------------------------------------------------------
def test_a_patch_carries_the_object_it_was_decided_on(bench: Bench):
    bench.transport.answers("PATCH", ONE, a_map("a"))

    bench.apply(Patch(FRESH, {"metadata": {"labels": {"x": "1"}}, "data": {}}))

    (body,) = bench.transport.bodies("PATCH")
    assert body == {"metadata": {"labels": {"x": "1"}, "uid": "uid-a", "resourceVersion": "7"}, "data": {}}
    (request,) = bench.transport.requests
    assert request.headers["content-type"] == "application/merge-patch+json"


def test_a_json_patch_and_an_unguarded_patch_are_sent_as_they_are(bench: Bench):
    bench.transport.answers("PATCH", ONE, a_map("a"))
    operations = [{"op": "remove", "path": "/data"}]

    bench.apply(Patch(FRESH, operations, kind="json"), Patch(Ref(MAPS, Key("ns", "a")), {"data": {}}))

    assert bench.transport.bodies("PATCH") == [operations, {"data": {}}]


def test_server_side_apply_names_its_manager_and_takes_fields_over(bench: Bench):
    bench.transport.answers("PATCH", f"{ONE}/status", a_map("a"))

    bench.apply(Patch(TARGET, {"data": {}}, kind="apply", subresource="status", manager="m"))

    assert dict(bench.transport.requests[0].query) == {"fieldManager": "m", "force": "true"}


REPLACED = Invalid.of("X", "a", [FieldError("metadata.uid", "Invalid value: field is immutable")])
OTHERWISE = Invalid.of("X", "a", [FieldError("spec", "Required value")])
STALE = Conflict.of("configmaps", "a", "the object has been modified")


@pytest.mark.parametrize(
    ("step", "answer", "object_now", "ok"),
    [
        pytest.param(Patch(TARGET, {}), NotFound.of("configmaps", "a"), None, True, id="it is gone"),
        pytest.param(Patch(TARGET, {}, gone_ok=False), NotFound.of("configmaps", "a"), None, False, id="must be there"),
        pytest.param(
            Patch(TARGET, {}), STALE, {"items": [a_map("a", uid="other")]}, True, id="conflict: another has the name"
        ),
        pytest.param(Patch(TARGET, {}), STALE, {"items": []}, True, id="conflict: gone meanwhile"),
        pytest.param(Patch(FRESH, {}), STALE, {"items": [a_map("a")]}, False, id="conflict: the same object, changed"),
        pytest.param(Patch(TARGET, {}), STALE, Forbidden("no"), False, id="conflict: it cannot be read"),
        pytest.param(Patch(TARGET, {}), STALE, ConnectionError("no"), False, id="conflict: the server is away"),
        pytest.param(Patch(TARGET, {}, gone_ok=False), STALE, None, False, id="conflict: must be there"),
        pytest.param(Patch(Ref(MAPS, Key("ns", "a")), {}), STALE, None, False, id="conflict: no uid was meant"),
        pytest.param(Patch(TARGET, {}), REPLACED, None, True, id="a custom object with another uid"),
        pytest.param(Patch(TARGET, {}), OTHERWISE, None, False, id="a custom object that is invalid"),
    ],
)
def test_a_target_that_is_gone_is_told_from_one_that_changed(
    bench: Bench, step: Patch, answer: Exception, object_now: Any, ok: bool
):
    bench.transport.answers("PATCH", ONE, answer)
    if object_now is not None:
        bench.transport.answers("GET", ALL, object_now)

    outcome = bench.apply(step)

    assert outcome.ok is ok
    assert len(bench.transport.sent("PATCH")) == 1
    assert outcome.ok or outcome.failures[0].error.__class__ is answer.__class__


# -- delete, bind, evict -------------------------------------------------------------------------------------------------
def test_a_delete_carries_its_preconditions_and_options(bench: Bench):
    bench.transport.answers("DELETE", ONE, {})

    bench.apply(Delete(FRESH, grace_seconds=0, propagation="Foreground"), Delete(Ref(MAPS, Key("ns", "a"))))

    assert bench.transport.bodies("DELETE") == [
        {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "preconditions": {"uid": "uid-a", "resourceVersion": "7"},
            "gracePeriodSeconds": 0,
            "propagationPolicy": "Foreground",
        }
    ]
    assert len(bench.transport.requests) == 2


@pytest.mark.parametrize(
    ("target", "answer", "ok"),
    [
        (TARGET, NotFound.of("configmaps", "a"), True),
        (TARGET, Conflict.of("configmaps", "a", "another uid"), True),
        (FRESH, Conflict.of("configmaps", "a", "another version"), False),
    ],
)
def test_deleting_what_is_gone_is_fine_and_what_has_changed_is_not(
    bench: Bench, target: Ref, answer: Exception, ok: bool
):
    bench.transport.answers("DELETE", ONE, answer)
    bench.transport.answers("GET", ALL, {"items": []})

    assert bench.apply(Delete(target)).ok is ok


def test_a_deletion_that_the_server_refuses_has_failed_while_the_object_is_there(bench: Bench):
    bench.transport.answers("DELETE", ONE, Conflict.of("configmaps", "a", "try again"))
    bench.transport.answers("GET", ALL, {"items": [a_map("a")]})

    assert not bench.apply(Delete(TARGET)).ok


def test_a_bind_names_the_pod_by_uid_and_brings_annotations(bench: Bench):
    bench.transport.answers("POST", f"{POD}/binding", {})

    bench.apply(Bind(Ref(PODS, Key("ns", "p"), uid="u"), "n1", {"a": "b"}), Bind(Ref(PODS, Key("ns", "p")), "n2"))

    first, second = bench.transport.bodies("POST")
    assert first["metadata"] == {"name": "p", "namespace": "ns", "uid": "u", "annotations": {"a": "b"}}
    assert first["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert second["metadata"] == {"name": "p", "namespace": "ns"}


def a_pod(phase: str, version: int) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": "ns", "uid": "u", "resourceVersion": str(version)}
    return {"metadata": metadata, "status": {"phase": phase}}


EVICT = Evict(Ref(PODS, Key("ns", "p"), uid="u", resource_version="3"), "Preempted", "x" * 5000)


def test_an_eviction_says_why_before_it_deletes(bench: Bench):
    bench.transport.answers("PATCH", f"{POD}/status", a_pod("Running", 4))
    bench.transport.answers("DELETE", POD, {})

    assert bench.apply(EVICT).ok

    assert [request.method for request in bench.transport.requests] == ["PATCH", "DELETE"]
    (condition,) = bench.transport.bodies("PATCH")[0]["status"]["conditions"]
    assert condition["type"] == "DisruptionTarget" and condition["reason"] == "Preempted"
    assert len(condition["message"]) == 1024
    assert condition["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_an_eviction_names_the_pod_that_was_seen_and_the_version_with_the_reason(bench: Bench):
    bench.transport.answers("PATCH", f"{POD}/status", a_pod("Running", 4))
    bench.transport.answers("DELETE", POD, {})

    bench.apply(EVICT)

    assert bench.transport.bodies("PATCH")[0]["metadata"] == {"uid": "u", "resourceVersion": "3"}
    assert bench.transport.bodies("DELETE")[0]["preconditions"] == {"uid": "u", "resourceVersion": "4"}


def test_a_pod_that_succeeds_while_it_is_evicted_is_not_deleted(bench: Bench):
    bench.transport.answers("PATCH", f"{POD}/status", a_pod("Running", 4))
    bench.transport.answers("DELETE", POD, Conflict.of("pods", "p", "another version"))

    assert not bench.apply(EVICT).ok, "so that it is decided again"


@pytest.mark.parametrize("answer", [NotFound.of("pods", "p"), a_pod("Succeeded", 4)], ids=["gone", "succeeded"])
def test_a_pod_that_is_gone_or_has_succeeded_is_not_evicted(bench: Bench, answer: Any):
    bench.transport.answers("PATCH", f"{POD}/status", answer)

    assert bench.apply(EVICT).ok
    assert bench.transport.sent("DELETE") == []


# -- secrets -------------------------------------------------------------------------------------------------------------
SECRETS, SECRET = "/api/v1/namespaces/ns/secrets", "/api/v1/namespaces/ns/secrets/s"


def _make() -> dict[str, bytes]:
    return {"key": b"\x00\xff"}


def _never() -> dict[str, bytes]:
    raise AssertionError("a key that exists is not made again")


def test_a_secret_that_exists_is_never_made_again(bench: Bench):
    bench.transport.answers("GET", SECRET, {"metadata": {"name": "s"}})

    assert bench.apply(EnsureSecret(Key("ns", "s"), _never)).ok
    assert bench.transport.sent("POST") == []


def test_a_secret_that_is_absent_is_made_with_its_owner(bench: Bench):
    bench.transport.answers("GET", SECRET, NotFound.of("secrets", "s"))
    bench.transport.answers("POST", SECRETS, {"metadata": {"name": "s"}})
    owner = OwnerReference(kind="Job", name="j", uid="u")

    bench.apply(EnsureSecret(Key("ns", "s"), _make, owner, {"l": "1"}), EnsureSecret(Key("ns", "s"), _make))

    first, second = bench.transport.bodies("POST")
    assert first["data"] == {"key": "AP8="} and first["type"] == "Opaque"
    assert first["metadata"]["ownerReferences"] == [{"kind": "Job", "name": "j", "uid": "u"}]
    assert "ownerReferences" not in second["metadata"]
    assert resource_type(Secret).path("ns") == SECRETS


# -- steps that are no writes ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("answer", "present"),
    [
        (a_map("a"), True),
        (a_map("a", uid="other"), False),
        (NotFound.of("configmaps", "a"), False),
    ],
)
def test_a_look_asks_the_server_for_that_very_object(bench: Bench, answer: Any, present: bool):
    bench.transport.answers("GET", ONE, answer)

    (found,) = bench.apply(Look(TARGET)).answers

    assert isinstance(found, Found) and found.present is present


def test_a_look_that_fails_is_a_failure(bench: Bench):
    bench.transport.answers("GET", ONE, ConnectionError("no route"))

    assert [str(each) for each in bench.apply(Look(TARGET)).failures] == ["Look ConfigMap ns/a: no route"]


def test_later_and_records_cost_no_request():
    client, clock = Client(ScriptedTransport()), VirtualClock()
    recorded: list[Record] = []

    class Recorder(EventRecorder):
        def record(self, record: Record) -> None:
            recorded.append(record)

    async def main() -> None:
        step, note = Later(timedelta(1)), Record(TARGET, "Why", "because")
        outcome = await Applier(client, clock, recorder=Recorder(client, clock, "c")).apply((note, step))
        await Applier(client, clock).apply((note,))
        assert outcome.later == [step] and recorded == [note] and outcome.writes == 0

    run_virtually(main())


# -- side by side ------------------------------------------------------------------------------------------------------------
def test_steps_together_go_on_when_one_fails(bench: Bench):
    bench.transport.answers("POST", ALL, Forbidden("no"), a_map("a"))

    outcome = bench.apply(Together((CREATE, CREATE, CREATE)), Later(timedelta(1)))

    assert len(bench.transport.requests) == 3
    assert len(outcome.failures) == 1 and outcome.later == []


def test_no_more_than_so_many_writes_are_under_way_at_once(bench: Bench):
    under_way = most = 0

    async def slow(_request: Request) -> dict[str, Any]:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await elapse(1)
        under_way -= 1
        return a_map("a")

    answer: Callable[[Request], Awaitable[dict[str, Any]]] = slow
    bench.transport.answers("POST", ALL, answer)

    outcome = bench.apply(Together((CREATE,) * (3 * MAX_CONCURRENT_WRITES)))

    assert outcome.ok and most == MAX_CONCURRENT_WRITES
    assert bench.seconds == pytest.approx(3.0)
