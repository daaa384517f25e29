"""URL, query and headers → what is asked for."""

from __future__ import annotations

import pytest

from volcano.api.errors import BadRequest, Invalid
from volcano.embedded.apiserver.wire.requests import (
    RequestTarget,
    default_manager,
    dry_run,
    flag,
    number,
    parse_target,
    write_options,
)
from volcano.machinery.transport import Request


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/api/v1/pods", RequestTarget("list", "", "v1", "pods")),
        ("GET", "/api/v1/namespaces/a/pods", RequestTarget("list", "", "v1", "pods", "a")),
        ("GET", "/api/v1/namespaces/a/pods/p", RequestTarget("get", "", "v1", "pods", "a", "p")),
        ("HEAD", "/api/v1/namespaces/a/pods/p", RequestTarget("get", "", "v1", "pods", "a", "p")),
        ("PUT", "/api/v1/namespaces/a/pods/p/status", RequestTarget("update", "", "v1", "pods", "a", "p", "status")),
        ("POST", "/api/v1/namespaces/a/pods/p/binding", RequestTarget("create", "", "v1", "pods", "a", "p", "binding")),
        ("GET", "/api/v1/namespaces", RequestTarget("list", "", "v1", "namespaces")),
        ("GET", "/api/v1/namespaces/a", RequestTarget("get", "", "v1", "namespaces", "a", "a")),
        ("PUT", "/api/v1/namespaces/a/finalize", RequestTarget("update", "", "v1", "namespaces", "a", "a", "finalize")),
        ("GET", "/api/v1/namespaces/a/status", RequestTarget("get", "", "v1", "namespaces", "a", "a", "status")),
        ("DELETE", "/apis/batch/v1/namespaces/a/jobs", RequestTarget("deletecollection", "batch", "v1", "jobs", "a")),
        ("DELETE", "/apis/batch/v1/namespaces/a/jobs/j", RequestTarget("delete", "batch", "v1", "jobs", "a", "j")),
        ("PATCH", "/apis/x.io/v1beta1/things/t", RequestTarget("patch", "x.io", "v1beta1", "things", "", "t")),
        ("GET", "/api/v1/watch/namespaces/a/pods", RequestTarget("watch", "", "v1", "pods", "a")),
        ("GET", "/api/v1/namespaces/a/services/s:80/proxy/x/y", RequestTarget("get", "", "v1", "services", "a", "s:80", "proxy", "x/y")),
        ("GET", "/api/v1/namespaces/a/configmaps/a%2Fb", RequestTarget("get", "", "v1", "configmaps", "a", "a/b")),
    ],
)  # fmt: skip
def test_resource_paths(method: str, path: str, expected: RequestTarget):
    assert parse_target(Request(method, path)) == expected


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "",
        "/api",
        "/api/v1",
        "/apis",
        "/apis/batch",
        "/apis/batch/v1",
        "/version",
        "/metrics",
        "/openapi/v3/api/v1",
    ],
)
def test_other_paths_are_about_no_resource(path: str):
    assert parse_target(Request("GET", path)) is None


def test_a_list_with_watch_is_a_watch():
    request = Request("GET", "/api/v1/pods", (("watch", "1"),))

    assert parse_target(request).verb == "watch"


def test_a_path_without_end_is_refused():
    with pytest.raises(BadRequest):
        parse_target(Request("GET", "/api/v1/" + "x" * 5000))


@pytest.mark.parametrize(
    ("text", "expected"), [("true", True), ("1", True), ("", True), ("false", False), ("0", False)]
)
def test_flags_are_read_as_kubernetes_does(text: str, expected: bool):
    assert flag(Request("GET", "/", (("watch", text),)), "watch") is expected
    assert flag(Request("GET", "/"), "watch") is False


@pytest.mark.parametrize("text", ["many", "1.5", "9" * 40])
def test_numbers_that_are_none_are_refused(text: str):
    with pytest.raises(BadRequest):
        number(Request("GET", "/", (("limit", text),)), "limit")


def test_options_of_a_write():
    request = Request(
        "POST", "/", (("dryRun", "All"), ("fieldManager", "me"), ("fieldValidation", "Strict"), ("force", "true"))
    )

    options = write_options(request)

    assert (options.dry_run, options.field_manager, options.field_validation, options.force) == (
        True,
        "me",
        "Strict",
        True,
    )
    with pytest.raises(Invalid):
        dry_run(["Some"])


@pytest.mark.parametrize(
    ("agent", "expected"), [("kubectl/v1.31 (linux)", "kubectl"), ("", "unknown"), ("curl", "curl")]
)
def test_who_writes_is_named_by_the_user_agent(agent: str, expected: str):
    assert default_manager(Request("POST", "/", headers={"user-agent": agent})) == expected
