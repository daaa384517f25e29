"""Generated garbage at every endpoint: never a 500, never a hang, always a Status with a code that fits."""

from __future__ import annotations

import asyncio
import copy
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.contract.bodies import a_config, a_crd, a_pod
from tests.fuzz.seed_objects import SEEDS
from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request, Response, User

SOMEONE = User("someone", ("system:authenticated",))
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "BREW")
MEDIA = (
    "application/json", "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml",
    "application/strategic-merge-patch+json", "application/yaml", "application/vnd.kubernetes.protobuf",
    "application/cbor", "text/plain", "",
)  # fmt: skip
PARAMETERS = (
    "watch", "limit", "continue", "labelSelector", "fieldSelector", "resourceVersion", "resourceVersionMatch", "dryRun",
    "fieldManager", "fieldValidation", "force", "timeoutSeconds", "gracePeriodSeconds", "propagationPolicy",
    "sendInitialEvents", "allowWatchBookmarks", "container", "tailLines", "pretty", "includeObject", "verbose", "exclude",
)  # fmt: skip
VALUES = (
    "",
    "1",
    "true",
    "-1",
    "abc",
    "All",
    "Strict",
    "Exact",
    "NotOlderThan",
    "a=b",
    "a in (",
    "metadata.name=x",
    "9" * 30,
    "é\x00",
    "Foreground",
)

texts = st.text(max_size=12) | st.sampled_from(("a", "default", "main", "v1", "1Gi", "-5", "Never", "None"))
scalars = (
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
garbage = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=5), max_leaves=20
)


class World:
    """A server with something in it, on a loop of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.server = ApiServer(MemoryStore(), clock=SystemClock())
        self.loop.run_until_complete(self.server.start())
        for path, body in (
            ("/api/v1/namespaces/default/pods", a_pod()),
            ("/api/v1/namespaces/default/configmaps", a_config("c", a="b")),
            ("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", a_crd()),
            ("/api/v1/nodes", {"metadata": {"name": "n"}}),
        ):
            assert self.send("POST", path, body).status == 201
        rows = [served.type for served in self.server.backend.registry.all()]
        self.collections = sorted({row.path("default") for row in rows} | {row.path() for row in rows})
        self.objects = sorted(
            {
                row.path("default", name, sub)
                for row in rows
                for name in ("p", "c", "default")
                for sub in ("", *row.subresources)
            }
        )

    def send(self, method: str, path: str, body: Any = None, user: User | None = ADMIN, **options: Any) -> Response:
        raw = body if isinstance(body, bytes) else b"" if body is None else msgspec.json.encode(body)
        return self.request(Request(method, path, body=raw, user=user, **options))

    def request(self, request: Request) -> Response:
        return self.loop.run_until_complete(asyncio.wait_for(self._answer(request), 20))

    async def _answer(self, request: Request) -> Response:
        response = await self.server.handle(request)
        if response.stream is not None:
            stream = response.stream
            try:
                async with asyncio.timeout(0.01):
                    await anext(stream)
            except (TimeoutError, StopAsyncIteration):
                pass
            await stream.aclose()
        return response


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def check(response: Response) -> None:
    assert 100 <= response.status < 500 or response.status in (503, 504), response.body
    if response.status >= 400 and response.headers.get("content-type") == "application/json":
        status = msgspec.json.decode(response.body)
        assert (status["kind"], status["status"], status["code"]) == ("Status", "Failure", response.status)
        assert status["message"]


fuzzed = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


@fuzzed
@given(source=st.data())
def test_requests_made_of_known_parts(world: World, source: st.DataObject):
    path = source.draw(st.sampled_from([*world.collections, *world.objects]))
    query = source.draw(st.lists(st.tuples(st.sampled_from(PARAMETERS), st.sampled_from(VALUES) | texts), max_size=3))
    headers = {
        "content-type": source.draw(st.sampled_from(MEDIA)),
        "accept": source.draw(st.sampled_from(("", "application/json", "application/json;as=Table;v=v1;g=meta.k8s.io", "*/*", "text/html"))),
    }  # fmt: skip
    body = source.draw(garbage)
    user = source.draw(st.sampled_from((ADMIN, SOMEONE, None)))

    check(world.send(source.draw(st.sampled_from(METHODS)), path, body, user, query=tuple(query), headers=headers))


@fuzzed
@given(method=st.sampled_from(METHODS), path=st.text(max_size=60), body=st.binary(max_size=200))
@example(method="GET", path="", body=b"")
@example(method="GET", path="/api//v1/%2e%2e/pods/%00", body=b"")
@example(method="POST", path="/api/v1/namespaces/default/pods", body=b"\xff\xfe{")
@example(method="POST", path="/api/v1/namespaces/default/pods", body=b"[" * 100_000)
@example(method="POST", path="/api/v1/namespaces/default/pods", body=b'{"a":' * 5000 + b"1" + b"}" * 5000)
def test_paths_and_bodies_of_anything(world: World, method: str, path: str, body: bytes):
    for prefix in ("", "/", "/api/v1/", "/apis/batch/v1/namespaces/default/", "/openapi/v3/"):
        check(world.send(method, prefix + path, body))


def mutations(seed: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A good object with one or two places of it replaced by garbage or gone."""
    places = list(_places(seed))

    @st.composite
    def mutated(draw: st.DrawFn) -> dict[str, Any]:
        found = copy.deepcopy(seed)
        for place in draw(st.lists(st.sampled_from(places), min_size=1, max_size=2)):
            target = found
            try:
                for step in place[:-1]:
                    target = target[step]
                if draw(st.booleans()):
                    target[place[-1]] = draw(garbage)
                else:
                    del target[place[-1]]
            except (KeyError, IndexError, TypeError):
                continue
        return found

    return mutated()


def _places(value: Any, path: tuple[Any, ...] = ()):  # type: ignore[no-untyped-def]
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in items:
        yield (*path, step)
        yield from _places(inner, (*path, step))


@pytest.mark.parametrize("path", SEEDS, ids=lambda path: path.rsplit("/", 1)[1])
@settings(fuzzed, max_examples=60)
@given(source=st.data())
def test_objects_that_are_almost_good(world: World, path: str, source: st.DataObject):
    body, again = (source.draw(mutations(SEEDS[path])) for _ in range(2))

    made = world.send("POST", path, body)
    check(made)

    if made.status == 201 and "metadata" in body and isinstance(made.body, bytes) and b'"uid"' in made.body:
        name = msgspec.json.decode(made.body)["metadata"].get("name", "")
        one = f"{path}/{name}"
        table = {"accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
        check(world.send("GET", path, headers=table))
        check(world.send("PUT", one, again))
        for media in (
            "application/merge-patch+json",
            "application/strategic-merge-patch+json",
            "application/apply-patch+yaml",
        ):
            check(world.send("PATCH", one, again, headers={"content-type": media}, query=(("fieldManager", "f"),)))
        check(world.send("POST", "/api/v1/namespaces/default/pods", a_pod("after"), SOMEONE))
        check(world.send("DELETE", one))
        world.send(
            "PATCH", one, {"metadata": {"finalizers": None}}, headers={"content-type": "application/merge-patch+json"}
        )


def test_bodies_over_the_limit_are_refused(world: World):
    response = world.send("POST", "/api/v1/namespaces/default/configmaps", b" " * (3 * 2**20 + 1))

    assert response.status == 413


@fuzzed
@given(body=st.binary(max_size=300))
def test_protobuf_of_anything(world: World, body: bytes):
    head = b"k8s\x00\x0a\x09\x0a\x02v1\x12\x03Pod\x12"
    for content in (body, b"k8s\x00" + body, head + bytes([min(len(body), 127)]) + body[:127]):
        check(
            world.send(
                "POST",
                "/api/v1/namespaces/default/pods",
                content,
                headers={"content-type": "application/vnd.kubernetes.protobuf"},
            )
        )
