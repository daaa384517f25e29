"""Readiness and liveness."""

from __future__ import annotations

from volcano.embedded.apiserver.pages.status import Health
from volcano.machinery.transport import Request


def test_readiness_asks_every_check_and_liveness_only_its_own():
    health, state = Health(), {"fault": "starting"}
    health.add("nodes", lambda: state["fault"])

    assert health.reply(Request("GET", "/readyz")).status == 500
    assert b"[-]nodes failed: starting" in health.reply(Request("GET", "/readyz")).body
    assert health.reply(Request("GET", "/livez")).body == b"ok"
    assert health.reply(Request("GET", "/readyz", (("exclude", "nodes"),))).status == 200
    assert health.reply(Request("GET", "/readyz/nodes")).status == 500
    state["fault"] = ""
    assert health.reply(Request("GET", "/readyz")).body == b"ok"
    assert health.reply(Request("GET", "/readyz/none")).status == 404
    assert health.reply(Request("GET", "/other")) is None


def test_a_check_apart_is_answered_by_its_name_and_does_not_count_in_readiness():
    health = Health()
    health.add_apart("components", lambda: "starting")

    assert health.reply(Request("GET", "/readyz")).body == b"ok"
    assert health.reply(Request("GET", "/readyz/components")).status == 500
    assert health.reply(Request("GET", "/livez/components")).status == 404
