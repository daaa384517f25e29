"""`volcano env`: where the running system's kubeconfig is, as a line for the shell."""

from __future__ import annotations

import shlex

import click

from volcano.app.settings import data_directory


@click.command()
@click.option("--data-dir", default=None, help="The data directory of the system.")
def env_command(data_dir: str | None) -> None:
    """Print the export line for KUBECONFIG.

    \b
    Example:
      eval "$(volcano env)"
    """
    kubeconfig = data_directory(data_dir) / "kubeconfig"
    if not kubeconfig.is_file():
        raise click.ClickException(f"there is no kubeconfig at {kubeconfig}: start the system with `volcano up`")
    click.echo(f"export KUBECONFIG={shlex.quote(str(kubeconfig))}")
