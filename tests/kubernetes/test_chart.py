"""The Helm chart: it lints, renders what the manifests say, and can be installed, upgraded and taken away."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.running_server import Client
from tests.stories.builders import a_queue
from volcano.install.installation import installation
from volcano.install.values import VALUES, Values

from .commands import kubectl
from .control_plane import ControlPlane
from .fixtures import CHART, switch_off_webhooks

SETTINGS = [
    {},
    {"admission.mode": "policies", "scheduler.replicas": 1},
    {"admission.mode": "none", "controllers.sharding": True, "networkPolicies.enabled": False, "podDisruptionBudgets.enabled": False},
    {"metrics.serviceMonitor.enabled": True, "image.repository": "registry.example/v", "scheduler.extraArgs": ["--schedule-period=2s"]},
]  # fmt: skip


def run(helm: Path, *words: str, kubeconfig: Path | None = None) -> str:
    environment = {**os.environ, **({"KUBECONFIG": str(kubeconfig)} if kubeconfig else {})}
    done = subprocess.run([str(helm), *words], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def flags(chosen: dict[str, Any]) -> list[str]:
    words = []
    for path, value in chosen.items():
        text = (
            "{" + ",".join(value) + "}"
            if isinstance(value, list)
            else str(value).lower()
            if isinstance(value, bool)
            else str(value)
        )
        words += ["--set", f"{path}={text}"]
    return words


def by_name(bodies: list[Any]) -> dict[tuple[str, str], Any]:
    found = {}
    for body in bodies:
        name = body["metadata"]["name"].removesuffix("-1") if body["kind"] == "Job" else body["metadata"]["name"]
        found[body["kind"], name] = {**body, "metadata": {**body["metadata"], "name": name}}
    return found


def test_the_chart_lints(helm: Path):
    for chosen in SETTINGS:
        assert "0 chart(s) failed" in run(helm, "lint", "--strict", str(CHART), *flags(chosen))


@pytest.mark.parametrize("chosen", SETTINGS, ids=str)
def test_the_chart_renders_what_the_manifests_say(helm: Path, chosen: dict[str, Any]):
    words = ["template", "volcano", str(CHART), "--namespace", "volcano-system", "--include-crds"]

    rendered = [body for body in yaml.safe_load_all(run(helm, *words, *flags(chosen))) if body]

    expected = [body for body in installation(Values(chosen)) if body["kind"] != "Namespace"]
    assert by_name(rendered) == by_name(expected)


def test_the_notes_say_what_was_chosen_and_their_job_is_accepted(helm: Path, installed: str, plane: ControlPlane):
    words = [
        "install",
        "other",
        str(CHART),
        "--namespace",
        "elsewhere",
        "--dry-run=client",
        "--set",
        "schedulerName=mine",
    ]

    notes = {
        mode: run(helm, *words, "--set", f"admission.mode={mode}").partition("NOTES:\n")[2]
        for mode in ("webhook", "policies", "none")
    }

    assert "a webhook, whose certificate" in notes["webhook"]
    assert "by policies inside the API server" in notes["policies"]
    assert "none: only the definitions" in notes["none"]
    for text in notes.values():
        assert "kubectl -n elsewhere get pods" in text
        assert "WARNING: the image is named without a registry" in text
        manifest = text.partition("<<END\n")[2].partition("\nEND\n")[0]
        assert "job.batch.volcano.sh/hello created" in kubectl(
            plane, "create", "--dry-run=server", "-f", "-", given=manifest
        )


def test_every_value_is_explained():
    text = (CHART / "values.yaml").read_text()
    table = (CHART / "README.md").read_text()

    for value in VALUES:
        assert f"# {value.meaning}\n" in text, value.path
        assert f"| `{value.path}` |" in table
    assert yaml.safe_load(text)["scheduler"]["config"].startswith("actions:")


def test_older_clusters_get_the_beta_of_mutating_policies(helm: Path):
    text = run(helm, "template", "volcano", str(CHART), "--set", "admission.mode=policies", "--kube-version", "1.34.0")

    versions = {
        body["apiVersion"] for body in yaml.safe_load_all(text) if body and body["kind"] == "MutatingAdmissionPolicy"
    }
    assert versions == {"admissionregistration.k8s.io/v1beta1"}


def test_a_value_that_does_not_exist_is_refused(helm: Path):
    done = subprocess.run(
        [str(helm), "lint", str(CHART), "--set", "scheduler.colour=blue"], capture_output=True, text=True, timeout=60
    )

    assert done.returncode != 0


@pytest.mark.parametrize("chosen", SETTINGS[:3], ids=str)
def test_the_server_accepts_every_object(
    helm: Path, installed: str, plane: ControlPlane, api: Client, chosen: dict[str, Any]
):
    text = run(
        helm,
        "upgrade",
        "volcano",
        str(CHART),
        "--namespace",
        installed,
        "--dry-run=server",
        *flags(chosen),
        kubeconfig=plane.kubeconfig,
    )

    assert "STATUS: pending-upgrade" in text or "MANIFEST" in text


def test_an_upgrade_keeps_definitions_and_objects(
    helm: Path, running: Any, installed: str, plane: ControlPlane, api: Client
):
    queues = "/apis/scheduling.volcano.sh/v1beta1/queues"
    assert api.create(queues, a_queue("kept", weight=7)).status == 201
    definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/queues.scheduling.volcano.sh"
    before = api.get(definition).body["metadata"]["uid"]
    zero = [word for name in ("scheduler", "controllers", "admission") for word in ("--set", f"{name}.replicas=0")]

    try:
        run(
            helm,
            "upgrade",
            "volcano",
            str(CHART),
            "--namespace",
            installed,
            "--set",
            "logLevel=1",
            *zero,
            kubeconfig=plane.kubeconfig,
        )
    finally:
        switch_off_webhooks(api)

    assert api.get(definition).body["metadata"]["uid"] == before
    assert api.get(f"{queues}/kept").body["spec"]["weight"] == 7
    deployment = api.get(f"/apis/apps/v1/namespaces/{installed}/deployments/volcano-scheduler").body
    assert "--v=1" in deployment["spec"]["template"]["spec"]["containers"][0]["args"]
    api.delete(f"{queues}/kept")


def test_volcanos_own_definitions_can_be_taken_over(installed: str, plane: ControlPlane, api: Client):
    """Definitions that something else installed are brought up to date by server-side apply, their objects stay."""
    from volcano.api.schemas.crds import crd_manifests

    from .components import apply

    apply(api, crd_manifests())

    assert api.get("/apis/scheduling.volcano.sh/v1beta1/queues").status == 200
