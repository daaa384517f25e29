"""A story is told on both hosts: the embedded system on virtual time, and the components on a real kube-apiserver.

A story takes `host` and gives it an async function of the system. `@pytest.mark.hosts("embedded")` keeps a story to one host:
where it lets hours pass, or needs nodes of a size of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.components import Components, Process, apply, discover, path_of, wait_for
from tests.running_server import Client
from tests.stories.builders import a_job
from tests.stories.hosts import EmbeddedHost, Host, KubernetesHost
from volcano.admission.policies import policy_manifests
from volcano.api.core import ConfigMap
from volcano.api.meta import Key
from volcano.api.scheme import resource_type

MARKS = {"embedded": [], "kubernetes": [pytest.mark.kubernetes, pytest.mark.xdist_group("kubernetes")]}
Configure = Callable[..., Awaitable[str]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "host" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("hosts")
    names = marker.args if marker is not None else tuple(MARKS)
    metafunc.parametrize("host", [pytest.param(name, marks=MARKS[name]) for name in names], indirect=True)


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Host:
    if request.param == "embedded":
        return EmbeddedHost()
    request.getfixturevalue("running")  # scheduler, controllers and nodes
    return KubernetesHost(request.getfixturevalue("plane").kubeconfig, request.getfixturevalue("namespace"))


@pytest.fixture(scope="module")
def policies(api: Client) -> Iterator[None]:
    """Admission by policies on the real API server; they fill in the limit of a GPU that is only requested."""
    bodies = policy_manifests()
    apply(api, bodies)
    wait_for(lambda: made_by_trial(api).get("schedulerName"), why="the policies are in force")
    yield
    plurals = discover(api)
    for body in bodies:
        api.delete(f"{path_of(body, plurals)}/{body['metadata']['name']}")
    wait_for(lambda: not made_by_trial(api).get("schedulerName"), why="the policies are gone")


def made_by_trial(api: Client) -> dict:
    """The spec of a Job that is created as a dry run."""
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    body = a_job("trial")
    del body["spec"]["schedulerName"]
    return api.create(path, body, query={"dryRun": "All"}).body.get("spec", {})


@pytest.fixture
def admission(request: pytest.FixtureRequest, host: Host) -> None:
    """Volcano's admission on either host; the embedded system has it in any case."""
    if isinstance(host, KubernetesHost):
        request.getfixturevalue("policies")


@pytest.fixture(scope="session")
def small_nodes(running: Components) -> str:
    """A pool of two nodes of 4 CPUs on the real cluster, for schedulers of a story's own."""
    running.nodes("told", 2, cpu="4")
    return "told"


@pytest.fixture
def configure(request: pytest.FixtureRequest, host: Host, tmp_path: Path) -> Iterator[Configure]:
    """A scheduler with a configuration, and its name: the embedded one is changed, the real cluster gets one more.

    On the real cluster it uses the nodes of a pool: "main", or "told" with two nodes of 4 CPUs.
    """
    started: list[Process] = []

    async def embedded(system: Any, text: str, *, pool: str = "") -> str:
        key = Key("volcano-system", "volcano-scheduler-configmap")
        await system.client.patch(resource_type(ConfigMap), key, {"data": {"volcano-scheduler.conf": text}})
        await system.settle()
        return "volcano"

    async def real(_system: Any, text: str, *, pool: str = "main") -> str:
        running = request.getfixturevalue("running")
        conf, name = tmp_path / "volcano-scheduler.conf", f"told-{len(running.running)}"
        conf.write_text(text)
        words = ("--scheduler-name", name, "--node-selector", f"pool:{pool}", "--scheduler-conf", str(conf))
        started.append(running.scheduler(*words))
        return name

    if isinstance(host, KubernetesHost):
        request.getfixturevalue("small_nodes")
        yield real
    else:
        yield embedded
    for process in started:
        process.stop()
