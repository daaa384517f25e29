"""Expectations of a policy test: `queue.research.wait.p95 < 10m`, checked against the figures of a run."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from volcano.api.nearest_words import did_you_mean
from volcano.simulator.comparison import PolicyRun
from volcano.simulator.fields import InvalidScenario, seconds_at
from volcano.simulator.figures import bounded_slowdown, requested
from volcano.simulator.jobs import JobOutcome

COMPARE: Final[Mapping[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
LINE: Final = re.compile(r"\s*(?P<metric>[^\s<>=!]+)\s*(?P<operator><=|>=|==|!=|<|>)\s*(?P<value>\S+)\s*")
NAMED_JOBS: Final = 3
JOB_METRICS: Final[Mapping[str, Callable[[JobOutcome], float | None]]] = {
    "starts": lambda of: of.start,
    "ends": lambda of: of.end,
    "wait": lambda of: of.wait,
    "run_time": lambda of: of.ran,
    "slowdown": lambda of: bounded_slowdown(of) if of.end is not None else None,
    "evictions": lambda of: float(of.evictions),
    "attempts": lambda of: float(of.attempts),
    "lost_pod_seconds": lambda of: of.lost_seconds,
}


@dataclass(slots=True, frozen=True)
class Expectation:
    text: str
    metric: str
    operator: str
    value: float


@dataclass(slots=True)
class CheckedExpectation:
    """What was found; `found` None: there is no such figure, because the job has not got so far."""

    expectation: Expectation
    found: float | None
    holds: bool
    contributors: list[str] = field(default_factory=list)  # the jobs that contributed most, when it does not hold


def parse_expectation(text: str, path: str = "expect") -> Expectation:
    match = LINE.fullmatch(text)
    if match is None:
        raise InvalidScenario(f"{path}: {text!r}: must be `metric operator value`, such as `wait.p95 < 10m`")
    return Expectation(text.strip(), match["metric"], match["operator"], _value(match["value"], path, text))


def _value(text: str, path: str, line: str) -> float:
    try:
        return float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    except ValueError:
        try:
            return seconds_at(text, path)
        except InvalidScenario as error:
            what = "must be a number, a percentage or a duration"
            raise InvalidScenario(f"{path}: {line!r}: {text!r}: {what}") from error


# -- figures by name --------------------------------------------------------------------------------------------------
def named_figures(report: Mapping[str, Any]) -> dict[str, float]:
    """The figures of one policy, by the names that expectations use."""
    found = dict(_flat("", {key: value for key, value in report.items() if key != "fairness"}))
    found["fairness.jain"] = float(report["fairness"]["jain"])
    for name, queue in report["fairness"]["queues"].items():
        found.update(_flat(f"queue.{name}.", queue))
    for name in ("never_runnable", "unfinished"):
        found[name] = found.pop(f"{name}.count")
    return found


def _flat(prefix: str, values: Mapping[str, Any]) -> Iterable[tuple[str, float]]:
    for key, value in values.items():
        if (
            isinstance(value, bool | str | list)
            or value is None
            or (key in ("jobs", "failed") and isinstance(value, dict))
        ):
            continue
        if isinstance(value, Mapping):
            yield from _flat(f"{prefix}{key}.", value)
        else:
            yield f"{prefix}{key}", float(value)


def check(
    expectations: Sequence[Expectation], report: Mapping[str, Any], run: PolicyRun, path: str = "expect"
) -> list[CheckedExpectation]:
    """Every expectation against the figures of one policy. A metric that does not exist is bad input."""
    figures = named_figures(report)
    checked = []
    for index, each in enumerate(expectations):
        found = _figure(each, figures, run, f"{path}[{index}]")
        holds = found is not None and COMPARE[each.operator](found, each.value)
        contributors = [] if holds else _contributors(each.metric, report, run)
        checked.append(CheckedExpectation(each, found, holds, contributors))
    return checked


def _figure(each: Expectation, figures: Mapping[str, float], run: PolicyRun, path: str) -> float | None:
    if each.metric.startswith("job."):
        name, _, what = each.metric.removeprefix("job.").rpartition(".")
        if what not in JOB_METRICS:
            known = [f"job.{name}.{metric}" for metric in JOB_METRICS]
            raise InvalidScenario(f"{path}: no metric is called {each.metric}{did_you_mean(each.metric, known)}")
        if name not in run.outcomes:
            raise InvalidScenario(f"{path}: there is no job {name}{did_you_mean(name, run.outcomes)}")
        return JOB_METRICS[what](run.outcomes[name])
    if each.metric not in figures:
        raise InvalidScenario(f"{path}: no metric is called {each.metric}{did_you_mean(each.metric, figures)}")
    return figures[each.metric]


# -- who contributed --------------------------------------------------------------------------------------------------
def _contributors(metric: str, report: Mapping[str, Any], run: PolicyRun) -> list[str]:
    if metric.startswith("job."):
        return _in_the_way(metric.removeprefix("job.").rpartition(".")[0], run)
    every, last = list(run.outcomes.values()), metric
    if metric.startswith("queue."):
        name = next((n for n in report["fairness"]["queues"] if metric.startswith(f"queue.{n}.")), "")
        every, last = [outcome for outcome in every if outcome.job.queue == name], metric.removeprefix(f"queue.{name}.")
    what, weigh = _weight(last, run.now)
    ranked = sorted(((weigh(outcome), outcome.job.name) for outcome in every), key=lambda pair: (-pair[0], pair[1]))
    return [f"{name} ({what} {_shown(weight)})" for weight, name in ranked[:NAMED_JOBS] if weight > 0.0]


def _weight(metric: str, now: float) -> tuple[str, Callable[[JobOutcome], float]]:
    if metric.startswith("evictions"):
        return "evictions", lambda of: float(of.evictions)
    if metric.startswith("lost"):
        return "lost pod seconds", lambda of: of.lost_seconds
    if metric.startswith("makespan"):
        return "ended at", lambda of: of.end if of.end is not None else now
    if metric.startswith("bounded_slowdown"):
        return "slowdown", bounded_slowdown
    if metric.startswith(("utilisation", "allocation", "fairness", "held", "deserved", "satisfied")):
        return "cpu seconds waited", lambda of: _wait(of, now) * requested(of.job).get("cpu", 0.0)
    return "waited", lambda of: _wait(of, now)


def _wait(outcome: JobOutcome, now: float) -> float:
    return max((outcome.start if outcome.start is not None else now) - outcome.job.submit, 0.0)


def _in_the_way(name: str, run: PolicyRun) -> list[str]:
    """What ran while the job waited, by cpu seconds in that time."""
    job = run.outcomes[name]
    begin, end = job.job.submit, job.start if job.start is not None else run.now
    found = []
    for outcome in run.outcomes.values():
        if outcome is job or outcome.start is None:
            continue
        until = outcome.end if outcome.end is not None else run.now
        overlap = min(until, end) - max(outcome.last_start or outcome.start, begin)
        if overlap > 0.0:
            found.append((overlap * requested(outcome.job).get("cpu", 0.0), outcome.job.name))
    found.sort(key=lambda pair: (-pair[0], pair[1]))
    waited = f"{name} (waited {_shown(_wait(job, run.now))})"
    return [waited, *(f"{other} (ran meanwhile, {_shown(cpu)} cpu s)" for cpu, other in found[: NAMED_JOBS - 1])]


def _shown(value: float) -> str:
    return f"{value:,.3f}".rstrip("0").rstrip(".")
