"""The form in which a client asks for objects, and warnings in headers."""

from __future__ import annotations

import pytest

from volcano.api.errors import NotAcceptable
from volcano.embedded.apiserver.wire.representation import view_from, warning_header
from volcano.machinery.transport import Request


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
