"""`volcano mcp`: a read-only server of the Model Context Protocol on standard input and output."""

from __future__ import annotations

import click

from volcano import __version__

MISSING = "volcano mcp needs the package mcp: pip install 'volcano[mcp]'"


@click.command()
@click.option(
    "--kubeconfig", default="", help="Whose rights are used; otherwise KUBECONFIG, ~/.kube/config, the embedded system."
)
@click.option("--master", default="", help="Address of the API server, instead of the kubeconfig's.")
@click.option("--history-server", default="", envvar="VOLCANO_HISTORY", show_envvar=True,
              help="Address of `volcano history` on a cluster; otherwise the API server is asked.")  # fmt: skip
@click.version_option(__version__, prog_name="volcano-mcp")
def mcp_command(kubeconfig: str, master: str, history_server: str) -> None:
    """Answer assistants about jobs, queues, usage and the past; nothing can be changed.

    A client of the Model Context Protocol starts this command and speaks with it over its standard input and output.

    \b
    Example:
      volcano mcp --kubeconfig ~/.kube/config
    """
    try:
        from volcano.app.mcp_server import mcp_server
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0].startswith(("mcp", "pydantic")):
            raise click.ClickException(MISSING) from error
        raise
    from volcano.cli.cluster_reads import ClusterReads

    mcp_server(ClusterReads(kubeconfig, master, history_server)).run("stdio")
