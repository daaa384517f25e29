"""The extender plugin of a running scheduler asks a real HTTP service."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from volcano.scheduler.service.extender_calls import ExtenderCalls
from volcano.scheduler.service.registry import load_registry
from volcano.testing.clusters import cluster, gang

SECOND = timedelta(seconds=5)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        refused = self.path == "/predicate" and body.get("node", {}).get("Name") == "n1"
        answer = json.dumps({"status": "reserved" if refused else "", "path": self.path}).encode()
        self.send_response(503 if self.path == "/broken" else 200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Quietly."""


@pytest.fixture
def service() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join(timeout=5)


def test_a_service_is_asked_over_one_connection(service: str) -> None:
    calls = ExtenderCalls()

    answers = [calls(f"{service}/some?x=1", b"{}", SECOND) for _ in range(3)]

    assert {status for status, _ in answers} == {200}
    assert json.loads(answers[0][1])["path"] == "/some?x=1"
    assert calls(f"{service}/broken", b"{}", SECOND)[0] == 503


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/x", "ftp://127.0.0.1/x", "nonsense"])
def test_nobody_there_is_an_error_that_says_where(url: str) -> None:
    with pytest.raises(OSError, match=url.split(":")[0]):
        ExtenderCalls()(url, b"{}", SECOND)


def test_the_schedulers_own_extender_keeps_pods_off_nodes_the_service_refuses(service: str) -> None:
    arguments = {"extender": {"extender.urlPrefix": service, "extender.predicateVerb": "predicate"}}
    given = cluster(nodes={"n1": "cpu=4", "n2": "cpu=1"}, jobs={"a": gang(1), "b": gang(1)})

    outcome = given.schedule(
        plugins="gang, extender", arguments=arguments, knowing=[load_registry().plugins["extender"]]
    )

    assert list(outcome.binds.values()) == ["n2"]
    assert "1 node: reserved" in next(iter(outcome.why.values()))
