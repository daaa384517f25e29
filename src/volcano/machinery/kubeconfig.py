"""Where the API server is and who we are there: kubeconfig files and in-cluster service accounts, as values.

Reads files and runs credential plugins; opens no connection (machinery.http_transport does).
"""

from __future__ import annotations

import base64
import os
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from volcano.api.meta import JSON
from volcano.api.times import parse_timestamp
from volcano.machinery.kubeconfig_text import read_own

SERVICE_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
EXEC_SECONDS: Final = 60
MAX_FILE_BYTES: Final = 4 * 1024 * 1024


class ConfigError(ValueError):
    """The configuration names something that is not there, or cannot be read; the message says what and where."""


class Tokens(Protocol):
    """Where a bearer token comes from. `known` is the one at hand, "" when it has grown old: then `token` gets it."""

    def known(self, now: datetime) -> str: ...

    def token(self, now: datetime) -> str: ...


class Endpoint(msgspec.Struct, frozen=True):
    """All that is needed to reach an API server."""

    server: str
    namespace: str = "default"
    ca: bytes | None = None
    client_certificate: bytes | None = None
    client_key: bytes | None = None
    insecure: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""
    tokens: Any = None  # Tokens
    user: str = ""
    password: str = ""
    impersonate: str = ""
    files: tuple[Path, ...] = ()
    """What was read for it: credentials are read again when one of these files has changed."""
    read_again: Any = None  # Callable[[], Endpoint]


class FixedToken(msgspec.Struct, frozen=True):
    value: str

    def known(self, now: datetime) -> str:
        return self.value

    def token(self, now: datetime) -> str:
        return self.value


class TokenFile:
    """A token that is rotated on disk; read again every minute."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read: tuple[datetime, str] | None = None

    def known(self, now: datetime) -> str:
        return self._read[1] if self._read is not None and now - self._read[0] <= timedelta(minutes=1) else ""

    def token(self, now: datetime) -> str:
        if not self.known(now):
            self._read = (now, self._path.read_text().strip())
        return self._read[1] if self._read is not None else ""


class ExecPlugin:
    """A credential plugin (client.authentication.k8s.io v1 and v1beta1); its token is kept until it expires."""

    def __init__(self, spec: JSON, base: Path) -> None:
        self._spec, self._base = spec, base
        self._known: tuple[str, datetime | None] | None = None

    def known(self, now: datetime) -> str:
        fresh = self._known is not None and (self._known[1] is None or now < self._known[1])
        return self._known[0] if self._known is not None and fresh else ""

    def token(self, now: datetime) -> str:
        if known := self.known(now):
            return known
        status = self._run().get("status") or {}
        expires = status.get("expirationTimestamp")
        try:
            until = parse_timestamp(str(expires)) if expires else None
        except ValueError as error:
            raise ConfigError(f"the credential plugin's expirationTimestamp: {error}") from error
        self._known = (str(status.get("token", "")), until)
        return self._known[0]

    def client_certificate(self) -> tuple[bytes, bytes] | None:
        status = self._run().get("status") or {}
        if "clientCertificateData" not in status:
            return None
        return status["clientCertificateData"].encode(), status["clientKeyData"].encode()

    def _run(self) -> JSON:
        command = str(self._spec.get("command", ""))
        if "/" in command and not command.startswith("/"):
            command = str(self._base / command)
        version = str(self._spec.get("apiVersion", "client.authentication.k8s.io/v1"))
        asked = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
        environment = {
            **os.environ,
            **{item["name"]: item["value"] for item in self._spec.get("env") or ()},
            "KUBERNETES_EXEC_INFO": msgspec.json.encode(asked).decode(),
        }
        try:
            done = subprocess.run(
                [command, *(self._spec.get("args") or ())],
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=EXEC_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            hint = self._spec.get("installHint", "")
            raise ConfigError(f"the credential plugin {command!r} could not be run: {error}. {hint}".strip()) from error
        if done.returncode != 0:
            raise ConfigError(f"the credential plugin {command!r} failed with exit code {done.returncode}")
        try:
            found = msgspec.json.decode(done.stdout)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ConfigError(f"the credential plugin {command!r} did not print an ExecCredential") from error
        return found if isinstance(found, dict) else {}


def embedded_data_directory() -> Path:
    """Where the embedded system keeps its data and its kubeconfig: $VOLCANO_DATA_DIR, else ~/.local/share/volcano."""
    if os.environ.get("VOLCANO_DATA_DIR"):
        return Path(os.environ["VOLCANO_DATA_DIR"]).expanduser().absolute()
    return Path.home() / ".local" / "share" / "volcano"


def embedded_kubeconfig() -> Path:
    return embedded_data_directory() / "kubeconfig"


def load_endpoint_or_embedded(path: str | Path | None = None) -> Endpoint:
    """By the usual rules, else the embedded system of this user."""
    try:
        return load_endpoint(path)
    except ConfigError:
        own = embedded_kubeconfig()
        if path or os.environ.get("KUBECONFIG") or not own.is_file():
            raise
        return load_endpoint(own)


def load_endpoint(
    path: str | Path | None = None, *, context: str = "", server: str = "", environ: dict[str, str] | None = None
) -> Endpoint:
    """By the usual rules: the given file, else $KUBECONFIG, else ~/.kube/config, else the pod we run in."""
    environ = dict(os.environ) if environ is None else environ
    files = _candidates(path, environ)
    present = [file for file in files if file.is_file()]
    if path and not present:
        raise ConfigError(f"there is no kubeconfig at {path}")
    if present:
        return endpoint_from(present, context=context, server=server)
    if environ.get("KUBERNETES_SERVICE_HOST") and SERVICE_ACCOUNT.is_dir():
        return in_cluster(environ)
    if server:
        return Endpoint(server=server)
    raise ConfigError("no kubeconfig was found: give --kubeconfig, or set KUBECONFIG")


def _candidates(path: str | Path | None, environ: dict[str, str]) -> list[Path]:
    if path:
        return [Path(path)]
    if environ.get("KUBECONFIG"):
        return [Path(part) for part in environ["KUBECONFIG"].split(os.pathsep) if part]
    return [Path(environ.get("HOME", "~")).expanduser() / ".kube" / "config"]


def in_cluster(environ: dict[str, str]) -> Endpoint:
    host, port = environ["KUBERNETES_SERVICE_HOST"], environ.get("KUBERNETES_SERVICE_PORT", "443")
    host = f"[{host}]" if ":" in host else host
    namespace = SERVICE_ACCOUNT / "namespace"
    authority = SERVICE_ACCOUNT / "ca.crt"
    return Endpoint(
        server=f"https://{host}:{port}",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        ca=authority.read_bytes(),
        tokens=TokenFile(SERVICE_ACCOUNT / "token"),
        files=(authority,),
        read_again=lambda: in_cluster(environ),
    )


def endpoint_from(files: list[Path], *, context: str = "", server: str = "") -> Endpoint:
    """Merge kubeconfig files (the first to name a thing wins) and follow the context."""
    current, named = "", {"contexts": {}, "clusters": {}, "users": {}}  # type: ignore[var-annotated]
    for file in files:
        config = _read(file)
        current = current or str(config.get("current-context") or "")
        for section, inner in (("contexts", "context"), ("clusters", "cluster"), ("users", "user")):
            for item in config.get(section) or ():
                if not isinstance(item, dict) or not isinstance(item.get(inner) or {}, dict):
                    raise ConfigError(f"{file}: {section} must be a list of objects with a name and a {inner}")
                named[section].setdefault(item.get("name", ""), (file.parent, item.get(inner) or {}))
    chosen = context or current
    if chosen not in named["contexts"]:
        raise ConfigError(f'context "{chosen}" is not in {", ".join(map(str, files))}')
    _, found = named["contexts"][chosen]
    cluster_base, cluster = _named(named, "clusters", found.get("cluster", ""), chosen)
    user_base, user = _named(named, "users", found["user"], chosen) if found.get("user") else (Path(), {})
    endpoint = _endpoint(cluster_base, cluster, user_base, user, found.get("namespace") or "default", server)
    named_files = [
        base / str(section[name])
        for base, section, names in (
            (cluster_base, cluster, ("certificate-authority",)),
            (user_base, user, ("client-certificate", "client-key")),
        )
        for name in names
        if section.get(name) and not section.get(f"{name}-data")
    ]
    return msgspec.structs.replace(
        endpoint,
        files=(*files, *named_files),
        read_again=lambda: endpoint_from(files, context=chosen, server=server),
    )


def _endpoint(cluster_base: Path, cluster: JSON, user_base: Path, user: JSON, namespace: str, server: str) -> Endpoint:
    tokens: Tokens | None = None
    certificate = _material(user, "client-certificate", user_base)
    key = _material(user, "client-key", user_base)
    if user.get("token"):
        tokens = FixedToken(str(user["token"]))
    elif user.get("tokenFile"):
        tokens = TokenFile(user_base / user["tokenFile"])
    elif user.get("exec"):
        plugin = ExecPlugin(user["exec"], user_base)
        pair = plugin.client_certificate() if not certificate else None
        if pair is not None:
            certificate, key = pair
        else:
            tokens = plugin
    return Endpoint(
        server=server or str(cluster.get("server", "")).rstrip("/"),
        namespace=namespace,
        ca=_material(cluster, "certificate-authority", cluster_base),
        client_certificate=certificate,
        client_key=key,
        insecure=bool(cluster.get("insecure-skip-tls-verify")),
        tls_server_name=str(cluster.get("tls-server-name") or ""),
        proxy_url=str(cluster.get("proxy-url") or ""),
        tokens=tokens,
        user=str(user.get("username") or ""),
        password=str(user.get("password") or ""),
        impersonate=str(user.get("as") or ""),
    )


def _read(file: Path) -> JSON:
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"{file} is larger than {MAX_FILE_BYTES} bytes")
        content = file.read_bytes()
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    config = read_own(content)
    if config is not None:
        return config
    from volcano.api.bounded_yaml import BoundedYamlError, load_yaml  # takes longer than all else that this needs

    try:
        config = load_yaml(content)
    except BoundedYamlError as error:
        raise ConfigError(f"{file} cannot be read: {error}") from error
    if not isinstance(config, dict):
        raise ConfigError(f"{file} is not a kubeconfig")
    return config


def _named(named: dict[str, dict[str, tuple[Path, JSON]]], section: str, name: str, context: str) -> tuple[Path, JSON]:
    if name not in named[section]:
        raise ConfigError(f'context "{context}" names the {section[:-1]} "{name}", which is not there')
    return named[section][name]


def _material(section: JSON, name: str, base: Path) -> bytes | None:
    """A certificate or key: in line as base64, or a file beside the kubeconfig."""
    if section.get(f"{name}-data"):
        try:
            return base64.b64decode(section[f"{name}-data"], validate=True)
        except ValueError as error:
            raise ConfigError(f"{name}-data is not base64: {error}") from error
    if section.get(name):
        try:
            return (base / str(section[name])).read_bytes()
        except OSError as error:
            raise ConfigError(f"{name}: {error}") from error
    return None
