"""`volcano history`: records what happens on a cluster and answers questions about it; `export` writes past jobs."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Final

import click

from volcano import __version__
from volcano.api.history_lines import history_lines
from volcano.api.history_records import HISTORY_PATH
from volcano.app.component import (
    common_options,
    connected,
    election_options,
    lead_or_just_work,
    run_component,
    tls_of_health,
)
from volcano.app.review_access import ReviewAccess, authenticated
from volcano.history import queries
from volcano.history.database import Database
from volcano.history.history import History
from volcano.history.metrics import HistoryMetrics
from volcano.history.problems import DatabaseProblem
from volcano.history.questions import MAX_JOBS_PER_PAGE, JobQuestion
from volcano.history.recorder import HistoryRecorder
from volcano.history.retention import RetentionSettings, retention_from
from volcano.history.serving import HistoryPages
from volcano.machinery.clock import SystemClock
from volcano.machinery.http_endpoints import Routes, health_route, metrics_route, serving

DATABASE_VARIABLE: Final = "VOLCANO_HISTORY_DATABASE"
DEFAULT_ADDRESS: Final = "127.0.0.1:8084"


@click.group(invoke_without_command=True)
@common_options("volcano-history")
@click.option("--database", envvar=DATABASE_VARIABLE, default="", show_envvar=True,
              help="sqlite:///FILE, or postgresql://USER:PASSWORD@HOST/NAME.")  # fmt: skip
@click.option("--listen-address", default=DEFAULT_ADDRESS, show_default=True, help="Where questions are answered.")
@click.option("--retention", default="2160h", show_default=True, help="How long ended jobs are kept.")
@click.option("--size", default="10Gi", show_default=True, help="How much room the history may take.")
@click.version_option(__version__, prog_name="volcano-history")
@click.pass_context
def history_command(context: click.Context, /, **flags: Any) -> None:
    """Record every job of a cluster, and answer questions about the past with the rights of who asks.

    \b
    Examples:
      volcano history --kubeconfig ~/.kube/config --database sqlite:////var/lib/volcano/history.db
      volcano history --database postgresql://volcano@db.example/history
    """
    if context.invoked_subcommand is not None:
        return
    if not flags["database"]:
        raise click.UsageError(f"--database is needed, or {DATABASE_VARIABLE}")
    try:
        retention = retention_from(flags["retention"], flags["size"])
        database = Database(flags["database"])
    except (ValueError, DatabaseProblem) as error:
        raise click.UsageError(str(error)) from error
    try:
        run_component(lambda: _main(flags, database, retention), verbosity=flags["verbosity"])
    except* DatabaseProblem as group:
        raise click.ClickException(str(group.exceptions[0])) from None
    finally:
        database.close()


async def _main(flags: dict[str, Any], database: Database, retention: RetentionSettings) -> None:
    clock = SystemClock()
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            connected(flags["kubeconfig"], flags["master"], clock=clock, agent="volcano-history")
        )
        await clock.run(database.prepare)
        access = ReviewAccess(client, clock)
        pages = HistoryPages(History(database, clock), access, clock)
        recorder = HistoryRecorder(client, clock, database, retention=retention)
        metrics = HistoryMetrics(recorder)
        routes: Routes = {
            ("GET", f"{HISTORY_PATH}/*"): authenticated(pages.handler(), access),
            ("GET", "/healthz"): health_route(),
            ("GET", "/metrics"): metrics_route(metrics.registry),
        }
        context = await stack.enter_async_context(tls_of_health(clock, flags))
        port = await stack.enter_async_context(serving(flags["listen_address"], routes, context))
        if flags["enable_healthz"]:
            await stack.enter_async_context(serving(flags["healthz_address"], {("GET", "/healthz"): health_route()}))
        click.echo(f"the history answers at port {port}", err=True)
        await lead_or_just_work(client, clock, election_options(flags), recorder.run)


@history_command.command("export")
@click.option("--database", envvar=DATABASE_VARIABLE, required=True, help="As of `volcano history`.")
def export_command(database: str) -> None:
    """Write past jobs as JSON lines, oldest first, which `volcano simulate --trace FILE.jsonl` reads.

    \b
    Example:
      volcano history export --database sqlite:////var/lib/volcano/history.db > past.jsonl
    """
    try:
        opened = Database(database)
        opened.prepare()
        lines = history_lines(_all_jobs(opened))
        for line in lines:
            sys.stdout.buffer.write(line)
        opened.close()
    except DatabaseProblem as error:
        raise click.ClickException(str(error)) from error


def _all_jobs(database: Database) -> Any:
    offset = 0
    while True:
        question = JobQuestion(
            states=("ended",), sort="created", descending=False, offset=offset, limit=MAX_JOBS_PER_PAGE
        )
        page = queries.jobs(database, question)
        yield from page.jobs
        offset += len(page.jobs)
        if not page.jobs or offset >= page.total:
            return
