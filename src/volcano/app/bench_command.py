"""`volcano bench`: measures a cluster with jobs of chosen shapes, and compares it with published figures."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import click
import msgspec

from volcano.api.durations import parse_duration
from volcano.api.errors import ApiError
from volcano.api.quantity import parse_quantity
from volcano.app.bench_measure import (
    BenchPod,
    BenchRun,
    BenchShape,
    ShapeFigures,
    Unmeasured,
    bench_namespace,
    parse_shape,
)
from volcano.app.bench_published import published_rate
from volcano.app.calibration import calibration_seconds
from volcano.app.component import connected, find_endpoint, run_until_signalled
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.ids import RandomIds
from volcano.machinery.kubeconfig import ConfigError
from volcano.machinery.transport import Request

MEASURED, NOT_MEASURED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
DEFAULT_SHAPES: Final = "1x100,10x10,100x1"
MAX_SHAPES: Final = 20
REPORT_SECONDS: Final = 2.0
HEADINGS: Final = ("JOBSxPODS", "PODS/S", "ALL BOUND", "ALL STARTED", "BIND P50", "BIND P99", "WRITES/POD", "PUBLISHED")
WIDTHS: Final = (10, 7, 10, 12, 9, 9, 11, 0)
EMBEDDED_MARK: Final = "+volcano-"
"""In the version of the embedded API server."""


@click.command()
@click.option("--shapes", default=DEFAULT_SHAPES, show_default=True, help="Jobs x pods of each, separated by commas.")
@click.option("--kubeconfig", default="", help="Otherwise KUBECONFIG, ~/.kube/config, the embedded system.")
@click.option("--master", default="", help="Address of the API server, instead of the kubeconfig's.")
@click.option("--queue", default="default", show_default=True, help="The queue of the jobs.")
@click.option("--image", default="busybox", show_default=True, help="The image of the pods, which run `true`.")
@click.option("--cpu", default="10m", show_default=True, help="What each pod requests.")
@click.option("--memory", default="16Mi", show_default=True, help="What each pod requests.")
@click.option("--timeout", default="300s", show_default=True, help="How long one shape may take.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask before jobs are submitted.")
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
def bench_command(
    shapes: str, kubeconfig: str, master: str, queue: str, image: str, cpu: str, memory: str, timeout: str, yes: bool,
    output: str,
) -> None:  # fmt: skip
    """Measure how fast a cluster places and starts jobs.

    Jobs are submitted to a new namespace, which is deleted afterwards. Each job is a gang, so its pods are placed
    together. PODS/S counts from the first submit to the last bind; BIND is the time from when a pod exists until it has
    a node; WRITES/POD is the API server's own count, of all its clients, where its metrics may be read.

    \b
    Exit code: 0 all shapes were measured; 1 one did not end in time; 2 bad input; 130 Ctrl-C.

    \b
    Examples:
      volcano bench --shapes 1x20,10x2 --yes
      volcano bench --shapes 20x1 --cpu 5m --yes -o json
    """
    try:
        chosen, pod, limit = _inputs(shapes, cpu, memory, image, queue, timeout)
        server = find_endpoint(kubeconfig, master).server
    except (ValueError, ConfigError) as error:
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(BAD_INPUT) from error
    pods = sum(shape.total for shape in chosen)
    what = (
        f"submit {sum(shape.jobs for shape in chosen)} jobs with {pods} pods to {server}, in a namespace of their own"
    )
    if not yes and not (sys.stdin.isatty() and click.confirm(f"This will {what}. Go on?")):
        click.echo(f"Error: nothing was done. This would {what}; --yes says that it may", err=True)
        raise SystemExit(BAD_INPUT)
    outcome: list[int] = []

    async def main() -> None:
        clock = SystemClock()
        try:
            async with connected(kubeconfig, master, clock=clock, agent="volcano-bench") as client:
                outcome.append(await _bench(client, clock, chosen, pod, limit, as_json=output == "json"))
        except (ApiError, ConnectionError, ConfigError) as error:
            click.echo(f"Error: {error}", err=True)
            outcome.append(NOT_MEASURED)

    run_until_signalled(main)
    raise SystemExit(outcome[0] if outcome else INTERRUPTED)


def _inputs(
    shapes: str, cpu: str, memory: str, image: str, queue: str, timeout: str
) -> tuple[list[BenchShape], BenchPod, float]:
    words = shapes.split(",")
    if len(words) > MAX_SHAPES:
        raise ValueError(f"--shapes names {len(words)} shapes; at most {MAX_SHAPES} are measured in one run")
    chosen = [parse_shape(word) for word in words]
    for flag, amount in (("--cpu", cpu), ("--memory", memory)):
        try:
            parse_quantity(amount)
        except ValueError as error:
            raise ValueError(f"{flag} {amount!r}: {error}") from error
    try:
        limit = parse_duration(timeout).total_seconds()
    except ValueError as error:
        raise ValueError(f"--timeout {timeout!r}: {error}") from error
    if limit <= 0:
        raise ValueError(f"--timeout {timeout!r}: it must be longer than nothing")
    return chosen, BenchPod(image=image, cpu=cpu, memory=memory, queue=queue), limit


async def _bench(
    client: Client, clock: Clock, shapes: list[BenchShape], pod: BenchPod, limit: float, *, as_json: bool
) -> int:
    version = str(msgspec.json.decode((await client.raw(Request("GET", "/version"))).body).get("gitVersion", ""))
    is_embedded = EMBEDDED_MARK in version
    calibration = calibration_seconds()
    figures: list[ShapeFigures] = []
    code = MEASURED
    if not as_json:
        click.echo(f"API server {version}; calibration {calibration * 1000:.0f} ms on this machine")
        click.echo(_row(HEADINGS))
    async with bench_namespace(client, f"volcano-bench-{RandomIds().uid()[:8]}") as namespace:
        run = BenchRun(client, clock, namespace, pod, limit)
        for shape in shapes:
            try:
                found = await run.measure(shape, _progress(clock, shape))
            except Unmeasured as error:
                click.echo(f"{shape}: {error}", err=True)
                code = NOT_MEASURED
                continue
            figures.append(found)
            if not as_json:
                click.echo(_row(_cells(found, is_embedded=is_embedded)))
    if as_json:
        facts: dict[str, Any] = {
            "server": version, "embedded": is_embedded, "calibrationSeconds": round(calibration, 4), "shapes": figures,
        }  # fmt: skip
        click.echo(msgspec.json.format(msgspec.json.encode(facts), indent=2).decode())
    return code


def _progress(clock: Clock, shape: BenchShape) -> Callable[[int, int], None]:
    """Says every other second how far it is, on a terminal only."""
    last = [clock.monotonic()]

    def say(done: int, total: int) -> None:
        if sys.stderr.isatty() and clock.monotonic() - last[0] > REPORT_SECONDS:
            last[0] = clock.monotonic()
            click.echo(f"{shape}: {done} of {total} pods have started", err=True)

    return say


def _cells(found: ShapeFigures, *, is_embedded: bool) -> tuple[str, ...]:
    return (
        found.shape,
        f"{found.pods_per_second:.0f}",
        f"{found.bound_seconds:.2f} s",
        f"{found.started_seconds:.2f} s",
        f"{found.create_to_bind_p50_seconds * 1000:.0f} ms",
        f"{found.create_to_bind_p99_seconds * 1000:.0f} ms",
        "-" if found.writes_per_pod is None else f"{found.writes_per_pod:.2f}",
        _compared(found, is_embedded=is_embedded),
    )


def _compared(found: ShapeFigures, *, is_embedded: bool) -> str:
    rate = published_rate(found.shape, is_embedded=is_embedded)
    return "-" if rate is None else f"{rate:g} pods/s ({found.pods_per_second / rate:.2f} times)"


def _row(cells: tuple[str, ...]) -> str:
    return "  ".join(
        cell.ljust(width) for cell, width in zip(cells, (10, 7, 10, 12, 9, 9, 11, 0), strict=True)
    ).rstrip()
