"""A real control plane with Volcano installed by its chart, once a session; components run with the chart's rights.

A pytest plugin, so that tests/kubernetes and tests/stories share one control plane.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests import needs
from tests.oidc_provider import OidcProvider, oidc_provider
from tests.running_server import Client
from volcano.install.installation import installation
from volcano.install.values import Values
from volcano.machinery.client import Client as TypedClient
from volcano.machinery.clock import SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.kubeconfig import load_endpoint

from .components import NAMESPACE, Components, apply, components, wait_for
from .control_plane import ControlPlane, binaries
from .helm import find_helm
from .real_system import RealSystem, real_system

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "volcano"
WITHOUT_PODS = {f"{name}.replicas": 0 for name in ("scheduler", "controllers", "admission")}
"""Their processes are started by the tests, not by a kubelet."""
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def audit_logs() -> list[Path]:
    """Where the control planes of this session wrote what was asked of them."""
    return []


@pytest.fixture(scope="session")
def programs() -> Path:
    found = binaries()
    if found is None:
        pytest.skip(needs.CONTROL_PLANE)
    return found


@pytest.fixture(scope="session")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcProvider]:
    """Whose ID tokens the API server accepts."""
    with oidc_provider(tmp_path_factory.mktemp("oidc")) as found:
        yield found


@pytest.fixture(scope="session")
def plane(
    programs: Path, provider: OidcProvider, audit_logs: list[Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    knows_provider = [
        f"--oidc-issuer-url={provider.issuer}", f"--oidc-client-id={provider.client_id}",
        f"--oidc-ca-file={provider.ca_file}", "--oidc-username-claim=email", "--oidc-groups-claim=groups",
        "--oidc-groups-prefix=oidc:",
    ]  # fmt: skip
    more = {"kube-apiserver": knows_provider}
    with ControlPlane(tmp_path_factory.mktemp("plane"), programs, audits=True, more=more) as plane:
        audit_logs.append(plane.audit_log)
        yield plane


@pytest.fixture(scope="session")
def api(plane: ControlPlane) -> Client:
    """As the administrator."""
    return Client(plane.kubeconfig)


@pytest.fixture(scope="session")
def helm() -> Path:
    found = find_helm()
    if found is None:
        pytest.skip(needs.reason("helm is neither installed nor can it be fetched", "install helm, https://helm.sh"))
    return found


@pytest.fixture(scope="session")
def installed(plane: ControlPlane, api: Client) -> str:
    """Volcano is installed, by helm where there is one; the namespace."""
    found = find_helm()
    if found is None:
        apply(api, installation(Values(WITHOUT_PODS)))
    else:
        words = [f"--set={path}={value}" for path, value in WITHOUT_PODS.items()]
        install = [str(found), "install", "volcano", str(CHART), "--namespace", NAMESPACE, "--create-namespace", *words]
        done = subprocess.run(
            install,
            env={**os.environ, "KUBECONFIG": str(plane.kubeconfig)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
    switch_off_webhooks(api)
    wait_for(lambda: api.get(f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/volcano-scheduler").status == 200)
    return NAMESPACE


def switch_off_webhooks(api: Client) -> None:
    """They are switched on by the tests that serve them."""
    for kind in ("mutating", "validating"):
        root = f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations"
        for body in api.get(root).body["items"]:
            if body["metadata"]["name"].startswith("volcano-admission-service"):
                api.delete(f"{root}/{body['metadata']['name']}")


@pytest.fixture(scope="session")
def running(
    installed: str, plane: ControlPlane, api: Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Components]:
    """Scheduler, controllers and ten simulated nodes of the pool "main"."""
    with components(plane, api, tmp_path_factory.mktemp("components")) as found:
        found.nodes("main", 10)
        found.scheduler("--node-selector", "pool:main")
        found.controllers()
        wait_for(lambda: api.get("/apis/scheduling.volcano.sh/v1beta1/queues/default").status == 200)
        yield found


@pytest.fixture
def namespace(api: Client) -> Iterator[str]:
    name = f"t-{os.getpid()}-{next(_numbers)}"
    assert api.create("/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    wait_for(lambda: api.get(f"/api/v1/namespaces/{name}/serviceaccounts/default").status == 200)
    yield name
    api.delete(f"/api/v1/namespaces/{name}")


@pytest.fixture
async def client(plane: ControlPlane) -> AsyncIterator[TypedClient]:
    clock = SystemClock()
    found = TypedClient(HttpTransport(load_endpoint(plane.kubeconfig), clock), agent="tests")
    yield found
    await found.close()


@pytest.fixture
async def system(running: Components, client: TypedClient, namespace: str) -> AsyncIterator[RealSystem]:
    """What a test sees of its own namespace."""
    async with real_system(client, namespace) as found:
        yield found
        await found.end_jobs(timedelta(seconds=60))
