"""The `volcano` command: one line a subcommand, each imported only when it is used."""

from __future__ import annotations

import importlib
from typing import Any, Final

import click

from volcano import __version__
from volcano.api.nearest_words import did_you_mean

COMMANDS: Final = {
    "up": ("volcano.app.up_command:up_command", "Start the whole system on this machine."),
    "run": ("volcano.app.run_command:run_command", "Submit jobs, watch them live, end with them."),
    "env": ("volcano.app.env_command:env_command", "Print the export line for KUBECONFIG."),
    "status": ("volcano.app.status_command:status_command", "Say whether a system runs, and what is in it."),
    "down": ("volcano.app.down_command:down_command", "End the system that runs on this machine."),
    "reset": ("volcano.app.down_command:reset_command", "Remove everything that the system keeps; asks first."),
    "doctor": ("volcano.app.doctor_command:doctor_command", "Say what this machine can do, and what would help."),
    "replay": ("volcano.scheduler.service.replay:replay_command", "Run the scheduler on recorded clusters."),
    "simulate": ("volcano.app.simulate_command:simulate_command", "Try scheduling policies on a workload."),
    "bench": ("volcano.app.bench_command:bench_command", "Measure how fast a cluster places and starts jobs."),
    "policy": ("volcano.app.policy_command:policy_command", "Test scheduling policies by their outcomes."),
    "scheduler": ("volcano.app.scheduler_command:scheduler_command", "Run the scheduler against an API server."),
    "controller-manager": (
        "volcano.app.controllers_command:controller_manager_command",
        "Run the controllers against an API server.",
    ),
    "manager": ("volcano.app.manager_command:manager_command", "Run scheduler and controllers in one process."),
    "webhook-manager": ("volcano.app.webhook_command:webhook_manager_command", "Serve admission as a webhook."),
    "webhook-certificates": (
        "volcano.app.webhook_secret_command:webhook_certificates_command",
        "Make the webhook's certificate, as a Secret.",
    ),
    "dashboard": ("volcano.app.dashboard_command:dashboard_command", "Serve the dashboard for a cluster."),
    "agent": ("volcano.app.agent_command:agent_command", "Run this machine as a node of an API server."),
    "history": (
        "volcano.app.history_command:history_command",
        "Record what happens on a cluster, and answer about it.",
    ),
    "mcp": ("volcano.app.mcp_command:mcp_command", "Answer assistants about the cluster, read-only."),
    "apiserver": ("volcano.app.apiserver_command:apiserver_command", "Run the embedded API server alone."),
    "store": ("volcano.app.store_command:store_command", "Check, back up, restore the embedded system's database."),
    "completion": ("volcano.app.completion_command:completion_command", "Print shell completion of all programs."),
    "man": ("volcano.app.man_command:man_command", "Write manual pages of all programs."),
    "manifests": ("volcano.app.manifests_command:manifests_command", "Print CRDs and deployment manifests."),
}

COMPLETE: Final = "volcano.app.completion_command:complete_command"
"""What completion scripts call; it is not listed."""


class LazyGroup(click.Group):
    """Knows its commands' names and one-line helps without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        where = COMPLETE if cmd_name == "__complete" else COMMANDS.get(cmd_name, ("",))[0]
        if not where:
            return None
        module, _, name = where.partition(":")
        found: Any = getattr(importlib.import_module(module), name)
        return found if isinstance(found, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in (*COMMANDS, "__complete") and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]!r}{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="volcano")
def volcano_command() -> None:
    """A Kubernetes-native batch system, on your machine or on your cluster.

    \b
    Examples:
      volcano run examples/gang.yaml      run a gang of processes, then stop everything
      volcano up                          start the system and leave it running
      eval "$(volcano env)"               point kubectl and vcctl at it
    """


def main() -> None:
    volcano_command(prog_name="volcano")
