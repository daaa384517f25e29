"""Where the API server is and who we are there, from kubeconfig files, plugins and the pod we run in."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from volcano.machinery import kubeconfig
from volcano.machinery.kubeconfig import ConfigError, Endpoint, ExecPlugin, FixedToken, TokenFile, load_endpoint

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def written(path: Path, **changes: Any) -> Path:
    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "ns"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://one:6443/"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
        **changes,
    }
    path.write_text(yaml.safe_dump(config))
    return path


def user(**fields: Any) -> dict[str, Any]:
    return {"users": [{"name": "u", "user": fields}]}


def cluster(**fields: Any) -> dict[str, Any]:
    return {"clusters": [{"name": "c", "cluster": {"server": "https://one", **fields}}]}


def plugin(folder: Path, answer: Any, code: int = 0) -> dict[str, Any]:
    program = folder / "plugin"
    program.write_text(f"#!/bin/sh\nprintf x >>{folder}/runs\ncat <<'EOF'\n{json.dumps(answer)}\nEOF\nexit {code}\n")
    program.chmod(0o755)
    return {"command": "./plugin", "env": [{"name": "A", "value": "b"}]}


def test_the_current_context_is_followed(tmp_path: Path):
    found = load_endpoint(written(tmp_path / "config"))

    assert (found.server, found.namespace, found.tokens) == ("https://one:6443", "ns", FixedToken("secret"))
    assert found.tokens.known(NOW) == found.tokens.token(NOW) == "secret"


def test_of_several_files_the_first_to_name_something_wins(tmp_path: Path):
    first = written(tmp_path / "first", **cluster(), users=[])
    second = written(tmp_path / "second", **user(username="ann", password="p", **{"as": "bob"}))

    found = load_endpoint(environ={"KUBECONFIG": f"{first}:{second}:"})

    assert (found.server, found.user, found.password, found.impersonate) == ("https://one", "ann", "p", "bob")


def test_without_a_file_named_the_one_in_the_home_directory_is_read(tmp_path: Path):
    (tmp_path / ".kube").mkdir()
    written(tmp_path / ".kube" / "config")

    assert load_endpoint(environ={"HOME": str(tmp_path)}, server="https://two").server == "https://two"


def test_certificates_are_in_line_or_beside_the_file(tmp_path: Path):
    (tmp_path / "ca.crt").write_bytes(b"CA")
    inline = {f"client-{name}-data": base64.b64encode(name.encode()).decode() for name in ("certificate", "key")}
    ends = cluster(**{"certificate-authority": "ca.crt", "insecure-skip-tls-verify": True, "tls-server-name": "n"})

    found = load_endpoint(written(tmp_path / "config", **ends, **user(**inline)))

    assert (found.ca, found.client_certificate, found.client_key) == (b"CA", b"certificate", b"key")
    assert found.insecure and found.tls_server_name == "n" and found.tokens is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({"current-context": "x"}, 'context "x" is not in', id="no such context"),
        pytest.param({"clusters": []}, 'names the cluster "c", which is not there', id="no such cluster"),
        pytest.param({"users": []}, 'names the user "u", which is not there', id="no such user"),
        pytest.param({"users": ["u"]}, "users must be a list of objects", id="a text instead of an object"),
        pytest.param(cluster(**{"certificate-authority": "no.crt"}), "certificate-authority: ", id="no such file"),
        pytest.param(cluster(**{"certificate-authority-data": "?"}), "is not base64", id="not base64"),
    ],
)
def test_what_a_file_lacks_is_named(tmp_path: Path, changes: dict[str, Any], message: str):
    with pytest.raises(ConfigError, match=message):
        load_endpoint(written(tmp_path / "config", **changes))


@pytest.mark.parametrize(
    ("content", "message"),
    [("[1]", "is not a kubeconfig"), ("{", "cannot be read"), ("x" * (4 * 1024 * 1024 + 1), "is larger than")],
)
def test_what_is_no_kubeconfig_is_refused(tmp_path: Path, content: str, message: str):
    path = tmp_path / "config"
    path.write_text(content)

    with pytest.raises(ConfigError, match=message):
        load_endpoint(path)


def test_without_any_file_the_server_must_be_given(tmp_path: Path):
    environ = {"HOME": str(tmp_path)}

    assert load_endpoint(environ=environ, server="http://x") == Endpoint("http://x")
    with pytest.raises(ConfigError, match="no kubeconfig was found"):
        load_endpoint(environ=environ)
    with pytest.raises(ConfigError, match="there is no kubeconfig at"):
        load_endpoint(tmp_path / "none", environ=environ)


@pytest.mark.parametrize(("host", "server"), [("10.0.0.1", "https://10.0.0.1:6443"), ("fd::1", "https://[fd::1]:6443")])
def test_inside_a_pod_its_service_account_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, host: str, server: str
):
    (tmp_path / "ca.crt").write_bytes(b"CA")
    (tmp_path / "namespace").write_text("mine\n")
    (tmp_path / "token").write_text("t\n")
    monkeypatch.setattr(kubeconfig, "SERVICE_ACCOUNT", tmp_path)
    environ = {"HOME": str(tmp_path), "KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": "6443"}

    found = load_endpoint(environ=environ)

    assert (found.server, found.namespace, found.ca) == (server, "mine", b"CA")
    assert found.tokens.token(NOW) == "t"


def test_a_token_file_is_read_again_after_a_minute(tmp_path: Path):
    path = tmp_path / "token"
    path.write_text("one\n")
    tokens = TokenFile(path)
    assert tokens.known(NOW) == "" and tokens.token(NOW) == "one"
    path.write_text("two\n")

    assert tokens.token(NOW + timedelta(seconds=60)) == "one"
    assert tokens.token(NOW + timedelta(seconds=61)) == "two"


def test_a_plugins_token_is_kept_until_it_expires(tmp_path: Path):
    spec = plugin(tmp_path, {"status": {"token": "t", "expirationTimestamp": "2026-01-01T01:00:00Z"}})
    tokens = ExecPlugin(spec, tmp_path)

    found = [tokens.token(NOW + timedelta(minutes=minutes)) for minutes in (0, 30, 59, 61)]

    assert found == ["t"] * 4 and (tmp_path / "runs").read_text() == "xx"


def test_a_plugin_may_give_a_certificate(tmp_path: Path):
    spec = plugin(tmp_path, {"status": {"clientCertificateData": "cert", "clientKeyData": "key"}})

    found = load_endpoint(written(tmp_path / "config", **user(exec=spec)))

    assert (found.client_certificate, found.client_key, found.tokens) == (b"cert", b"key", None)


def test_a_plugin_without_a_certificate_gives_tokens(tmp_path: Path):
    found = load_endpoint(written(tmp_path / "config", **user(exec=plugin(tmp_path, {"status": {"token": "t"}}))))

    assert found.tokens.token(NOW) == found.tokens.known(NOW) == "t"


@pytest.mark.parametrize(
    ("answer", "code", "message"),
    [
        ({}, 3, "failed with exit code 3"),
        ({"status": {"token": "t", "expirationTimestamp": "soon"}}, 0, "expirationTimestamp: 'soon' is not a time"),
    ],
)
def test_a_plugin_that_fails_is_an_error(tmp_path: Path, answer: Any, code: int, message: str):
    with pytest.raises(ConfigError, match=message):
        ExecPlugin(plugin(tmp_path, answer, code), tmp_path).token(NOW)


def test_a_plugin_that_prints_something_else_or_is_not_there_is_an_error(tmp_path: Path):
    with pytest.raises(ConfigError, match="did not print an ExecCredential"):
        ExecPlugin({"command": "echo", "args": ["{"]}, tmp_path).token(NOW)
    with pytest.raises(ConfigError, match=r"could not be run: .* install it"):
        ExecPlugin({"command": "/no/such/plugin", "installHint": "install it"}, tmp_path).token(NOW)
    assert ExecPlugin({"command": "echo", "args": ["[]"]}, tmp_path).token(NOW) == ""
