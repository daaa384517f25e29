"""`volcano manifests`: what a cluster needs to run the system, printed as YAML or written as a Helm chart (install)."""

from __future__ import annotations

from pathlib import Path

import click
import yaml

from volcano.api.schemas.crds import crd_manifests
from volcano.install.yaml_text import as_yaml


@click.group("manifests")
def manifests_command() -> None:
    """Print manifests for a Kubernetes cluster.

    \b
    Examples:
      volcano manifests all | kubectl apply --server-side -f -
      volcano manifests crds | kubectl apply --server-side -f -
    """


@manifests_command.command("all")
@click.option("--namespace", default="volcano-system", show_default=True, help="Where the components run.")
@click.option("--set", "assignments", multiple=True, metavar="PATH=VALUE",
              help="A value of the Helm chart: image.tag=1.2, admission.mode=policies, …")  # fmt: skip
def all_command(namespace: str, assignments: tuple[str, ...]) -> None:
    """A whole installation: namespace, definitions, rights, Deployments, Services, policies.

    \b
    Example:
      volcano manifests all --set image.repository=registry.example/volcano --set admission.mode=policies
    """
    from volcano.install.installation import installation
    from volcano.install.values import UnknownValue, Values, parse_assignment

    try:
        values = Values(dict(map(parse_assignment, assignments)), namespace=namespace)
    except (UnknownValue, yaml.YAMLError) as error:
        raise click.BadParameter(str(error), param_hint="--set") from error
    click.echo(as_yaml(installation(values)), nl=False)


@manifests_command.command("crds")
def crds_command() -> None:
    """The CustomResourceDefinitions of all Volcano kinds."""
    click.echo(as_yaml(crd_manifests()), nl=False)


@manifests_command.command("policies")
@click.option("--mutating-version", type=click.Choice(["v1", "v1beta1"]), default="v1", show_default=True,
              help="Version of MutatingAdmissionPolicies; v1beta1 before Kubernetes 1.36.")  # fmt: skip
@click.option("--namespace", default="volcano-system", show_default=True,
              help="Where the controllers run, whose word on who submitted a job is taken.")  # fmt: skip
def policies_command(mutating_version: str, namespace: str) -> None:
    """Admission rules as ValidatingAdmissionPolicies and MutatingAdmissionPolicies, instead of the webhook."""
    from volcano.admission.policies import policy_manifests

    click.echo(as_yaml(policy_manifests(mutating_version, namespace=namespace)), nl=False)


@manifests_command.command("chart")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def chart_command(folder: Path) -> None:
    """Write the Helm chart into FOLDER.

    \b
    Example:
      volcano manifests chart deploy/helm/volcano
    """
    from volcano.install.chart import write_chart

    write_chart(folder)


@manifests_command.command("monitoring")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--data-dir", default=None, help="Of a running `volcano up`, whose API server is then read too.")
def monitoring_command(folder: Path, data_dir: str | None) -> None:
    """Write Prometheus rules, a Grafana dashboard and a scrape configuration into FOLDER.

    \b
    Examples:
      volcano manifests monitoring deploy/monitoring
      volcano manifests monitoring mine --data-dir ~/.local/share/volcano
    """
    from volcano.app.monitoring_files import write_for, write_shared
    from volcano.app.settings import data_directory
    from volcano.machinery.clock import SystemClock

    if data_dir is None:
        write_shared(folder)
        return
    data = data_directory(data_dir)
    if not (data / "kubeconfig").is_file():
        raise click.BadParameter(f"there is no system in {data}", param_hint="--data-dir")
    path = write_for(data, folder, SystemClock())
    click.echo(f"prometheus --config.file {path}")
