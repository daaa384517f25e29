"""A real control plane for tests: etcd, kube-apiserver and kube-controller-manager on loopback, with certificates of its own.

`python -m tests.kubernetes.control_plane` starts one and prints its kubeconfig's path; Ctrl-C ends it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from volcano.machinery.certificates import Authority, kubeconfig

TOOLS = Path(__file__).resolve().parents[2] / "tools" / "kubernetes"
PATIENCE = 90.0
AUDIT_POLICY = """\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules: [{level: Metadata}]
"""

MINDER = """\
import os, signal, sys
minded = set()
for line in sys.stdin:
    number = int(line)
    minded.add(number) if number > 0 else minded.discard(-number)
for pid in minded:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""
"""Told of processes as they start (pid) and end (-pid); when whoever tells it is gone, it ends those that are left."""


def tool(name: str) -> Any:
    """A module of tools/kubernetes, which are scripts and no package."""
    sys.path.insert(0, str(TOOLS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def binaries() -> Path | None:
    """Where the built programs are, or None: then `make kubernetes` builds them."""
    build = tool("build")
    folder: Path = build.folder()
    return None if build.missing(folder) else folder


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class ControlPlane:
    """Everything is in one folder and ends with the block."""

    def __init__(
        self,
        folder: Path,
        programs: Path,
        *,
        audits: bool = False,
        controls: bool = True,
        strict: bool = True,
        more: dict[str, list[str]] | None = None,
    ) -> None:
        """`audits` keeps a line about every request in audit.log; `controls` starts the controllers; `more` are flags.

        `strict` has an admission plugin that is not on by default, but in some distributions: who blocks an owner's deletion
        must be allowed to.
        """
        self.folder, self._programs, self._audits, self._more = folder, programs, audits, more or {}
        self._controls, self._strict = controls, strict
        self.kubeconfig = folder / "kubeconfig"
        self.port, self._etcd_port, self._peer_port = free_port(), free_port(), free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> ControlPlane:
        now = datetime.now(UTC)
        self._minder = subprocess.Popen(
            [sys.executable, "-c", MINDER], stdin=subprocess.PIPE, text=True, start_new_session=True
        )
        self.authority = Authority(self.folder / "pki", now)
        self._server_pair = self.authority.server_pair(["127.0.0.1", "localhost"], now)
        self._write_keys(now)
        try:
            self.start("etcd")
            self.start("kube-apiserver")
            self._wait_ready()
            if self._controls:
                self.start("kube-controller-manager")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(list(self._running)):
            self.stop(name)
        self._minder.communicate()

    def _mind(self, number: int) -> None:
        assert self._minder.stdin is not None
        self._minder.stdin.write(f"{number}\n")
        self._minder.stdin.flush()

    @property
    def pids(self) -> dict[str, int]:
        return {name: process.pid for name, process in self._running.items()}

    @property
    def audit_log(self) -> Path:
        return self.folder / "audit.log"

    def start(self, name: str) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        self._running[name] = subprocess.Popen(
            [str(self._programs / name), *self._words(name), *self._more.get(name, [])], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        self._mind(self._running[name].pid)

    def stop(self, name: str, how: int = signal.SIGTERM) -> None:
        process = self._running.pop(name)
        process.send_signal(signal.SIGCONT)
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        self._mind(-process.pid)

    def signal(self, name: str, number: int) -> None:
        self._running[name].send_signal(number)

    def restart_apiserver(self) -> None:
        self.stop("kube-apiserver")
        self.start("kube-apiserver")
        self._wait_ready()

    def _write_keys(self, now: datetime) -> None:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import rsa

        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        (self.folder / "sa.key").write_bytes(pem)
        (self.folder / "audit.yaml").write_text(AUDIT_POLICY)
        admin = self.authority.client_pair("kubernetes-admin", ("system:masters",), now, file_name="admin")
        self.kubeconfig.write_bytes(kubeconfig(self.url, self.authority.pair.certificate, admin, user="admin"))
        self.kubeconfig.chmod(0o600)

    def _words(self, name: str) -> list[str]:
        folder, certificate = self.folder, str(self._server_pair)
        if name == "etcd":
            client, peer = f"http://127.0.0.1:{self._etcd_port}", f"http://127.0.0.1:{self._peer_port}"
            return [
                f"--data-dir={folder / 'etcd'}", f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
                f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
                f"--initial-cluster=default={peer}", "--unsafe-no-fsync=true", "--log-level=error",
            ]  # fmt: skip
        if name == "kube-apiserver":
            return [
                f"--etcd-servers=http://127.0.0.1:{self._etcd_port}", "--bind-address=127.0.0.1",
                f"--secure-port={self.port}", f"--tls-cert-file={certificate}", f"--tls-private-key-file={certificate}",
                f"--client-ca-file={self.authority.certificate_path}", f"--service-account-key-file={folder / 'sa.key'}",
                f"--service-account-signing-key-file={folder / 'sa.key'}", "--authorization-mode=Node,RBAC",
                "--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.96.0.0/16",
                "--allow-privileged=true", "--enable-aggregator-routing=false", "--profiling=false",
                "--kubelet-preferred-address-types=InternalIP",
                *(["--enable-admission-plugins=OwnerReferencesPermissionEnforcement"] if self._strict else []),
                f"--kubelet-client-certificate={folder / 'pki' / 'admin.crt'}",
                f"--kubelet-client-key={folder / 'pki' / 'admin.key'}",
                *([f"--audit-policy-file={folder / 'audit.yaml'}", f"--audit-log-path={self.audit_log}"] if self._audits else []),
            ]  # fmt: skip
        return [
            f"--kubeconfig={self.kubeconfig}", f"--service-account-private-key-file={folder / 'sa.key'}",
            f"--root-ca-file={self.authority.certificate_path}", "--use-service-account-credentials=false",
            "--leader-elect=false", "--bind-address=127.0.0.1", f"--secure-port={free_port()}",
            "--kube-api-qps=500", "--kube-api-burst=500", "--concurrent-gc-syncs=20",
        ]  # fmt: skip

    def _wait_ready(self) -> None:
        context = ssl.create_default_context(cafile=str(self.authority.certificate_path))
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if (code := self._running["kube-apiserver"].poll()) is not None:
                tail = (self.folder / "kube-apiserver.log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"kube-apiserver ended with {code}:\n{tail}")
            with contextlib.suppress(OSError):
                if urllib.request.urlopen(f"{self.url}/readyz", context=context, timeout=2).status == 200:
                    return
            time.sleep(0.2)
        raise RuntimeError(f"kube-apiserver was not ready within {PATIENCE} s; see {self.folder}")


def main() -> None:
    programs = binaries()
    if programs is None:
        sys.exit("the programs are not built: make kubernetes")
    with (
        tempfile.TemporaryDirectory(prefix="volcano-kubernetes-") as folder,
        ControlPlane(Path(folder), programs) as plane,
    ):
        print(plane.kubeconfig, flush=True)
        with contextlib.suppress(KeyboardInterrupt):
            signal.signal(signal.SIGTERM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
            signal.pause()


if __name__ == "__main__":
    main()
