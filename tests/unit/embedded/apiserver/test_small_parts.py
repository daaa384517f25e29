"""Ids, health, version order, forms asked for, warnings, QoS."""

from __future__ import annotations

import re

import pytest

from volcano.api.errors import NotAcceptable
from volcano.embedded.apiserver.pages.status import Health
from volcano.embedded.apiserver.registry.resources import version_rank
from volcano.embedded.apiserver.wire.representation import view_from, warning_header
from volcano.machinery.ids import ALPHABET, RandomIds, SeededIds
from volcano.machinery.transport import Request


@pytest.mark.parametrize("ids", [RandomIds(), SeededIds(1)])
def test_ids_do_not_repeat_and_look_right(ids):
    uids, suffixes = {ids.uid() for _ in range(500)}, [ids.suffix() for _ in range(500)]

    assert len(uids) == 500
    assert all(
        re.fullmatch(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", uid) for uid in uids
    )
    assert all(len(suffix) == 5 and set(suffix) <= set(ALPHABET) for suffix in suffixes)


def test_seeded_ids_are_the_same_for_the_same_seed():
    assert [SeededIds(5).uid() for _ in range(2)] == [SeededIds(5).uid() for _ in range(2)]
    assert SeededIds(5).uid() != SeededIds(6).uid()


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


def test_versions_are_ordered_by_maturity():
    versions = ["v1beta1", "foo", "v2", "v1alpha1", "v1", "v1beta2", "v11"]

    assert sorted(versions, key=version_rank) == ["v11", "v2", "v1", "v1beta2", "v1beta1", "v1alpha1", "foo"]


@pytest.mark.parametrize(
    ("accept", "shape"),
    [
        ("", ""),
        ("*/*", ""),
        ("application/json", ""),
        ("application/vnd.kubernetes.protobuf,application/json", ""),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table"),
        ("application/json;as=Table;v=v9;g=meta.k8s.io, application/json", ""),
        (
            "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1;g=meta.k8s.io",
            "Table",
        ),
    ],
)
def test_the_first_form_that_can_be_served_is(accept: str, shape: str):
    assert view_from(Request("GET", "/", headers={"accept": accept})).shape == shape


def test_forms_nobody_can_serve():
    with pytest.raises(NotAcceptable):
        view_from(Request("GET", "/", headers={"accept": "text/html"}))


def test_warnings_cannot_break_out_of_their_header():
    assert warning_header('say "hi"\r\nset-cookie: x') == '299 - "say \\"hi\\"  set-cookie: x"'
