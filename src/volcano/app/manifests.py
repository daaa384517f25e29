"""`volcano manifests`: what a cluster needs to run the system, printed as YAML."""

from __future__ import annotations

from collections.abc import Iterable

import click
import yaml

from volcano.api.crds import crd_manifests
from volcano.api.meta import JSON


def as_yaml(objects: Iterable[JSON]) -> str:
    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    return str(yaml.dump_all(objects, Dumper=dumper, sort_keys=False, default_flow_style=False, width=120))


@click.group("manifests")
def manifests_command() -> None:
    """Print manifests for a Kubernetes cluster.

    \b
    Example:
      volcano manifests crds | kubectl apply --server-side -f -
    """


@manifests_command.command("crds")
def crds_command() -> None:
    """The CustomResourceDefinitions of all Volcano kinds."""
    click.echo(as_yaml(crd_manifests()), nl=False)


@manifests_command.command("policies")
def policies_command() -> None:
    """Admission rules as ValidatingAdmissionPolicies and MutatingAdmissionPolicies, instead of the webhook."""
    from volcano.admission.policies import policy_manifests

    click.echo(as_yaml(policy_manifests()), nl=False)
