"""`volcano policy test`: scheduling policies with expectations about their outcomes, for people and for CI."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape, quoteattr

import click

from volcano.simulator.expectations import CheckedExpectation, Expectation, check, parse_expectation
from volcano.simulator.fields import InvalidScenario
from volcano.simulator.scenarios.scenario import Scenario, comparison_of, read_scenario

FAILED, BAD_INPUT = 1, 2
MAX_TEST_FILES: Final = 1000


@dataclass(slots=True)
class PolicyTestResult:
    """One file: each policy with its checked expectations, or why it could not be run."""

    path: Path
    checked: dict[str, list[CheckedExpectation]] = field(default_factory=dict)
    problem: str = ""

    @property
    def failures(self) -> list[tuple[str, CheckedExpectation]]:
        return [(policy, each) for policy, found in self.checked.items() for each in found if not each.holds]


@click.group()
def policy_command() -> None:
    """Test scheduling policies.

    \b
    Example:
      volcano policy test policies/
    """


@policy_command.command("test")
@click.argument("places", nargs=-1, required=True, metavar="FOLDER|FILE...")
@click.option("--junit", default="", metavar="FILE", help="Write the results as JUnit XML.")
@click.option("--update", is_flag=True, help="Write the figures that were found into each file, as `found:`.")
def policy_test_command(places: tuple[str, ...], junit: str, update: bool) -> None:
    """Simulate each scenario file and check the lines below `expect:`.

    \b
    Exit code: 0 every expectation holds; 1 one does not; 2 bad input.

    \b
    Examples:
      volcano policy test policies/
      volcano policy test policies/ --junit results.xml
    """
    results = [_tested(path, update=update) for path in _files(places)]
    for result in results:
        _show(result)
    if junit:
        try:
            Path(junit).write_text(junit_text(results), encoding="utf-8")
        except OSError as error:
            raise click.ClickException(f"--junit {junit}: {error.strerror}") from error
    lines = sum(len(found) for result in results for found in result.checked.values())
    failed, broken = sum(len(result.failures) for result in results), sum(bool(result.problem) for result in results)
    click.echo(f"{lines} expectations in {len(results)} files: {lines - failed} hold, {failed} do not")
    if broken:
        raise SystemExit(BAD_INPUT)
    raise SystemExit(FAILED if failed else 0)


def _files(places: tuple[str, ...]) -> list[Path]:
    found: list[Path] = []
    for place in map(Path, places):
        if place.is_dir():
            found += sorted(path for path in place.rglob("*") if path.suffix in (".yaml", ".yml"))
        else:
            found.append(place)
    if not found:
        click.echo(f"Error: no .yaml file in {', '.join(places)}", err=True)
        raise SystemExit(BAD_INPUT)
    if len(found) > MAX_TEST_FILES:
        click.echo(f"Error: {len(found)} files; at most {MAX_TEST_FILES} are tested at once", err=True)
        raise SystemExit(BAD_INPUT)
    return found


def _tested(path: Path, *, update: bool) -> PolicyTestResult:
    result = PolicyTestResult(path)
    try:
        scenario = read_scenario(path)
        expectations = _expectations(scenario, path)
        comparison = comparison_of(scenario)
        comparison.run(scenario.policies)
        report = comparison.report()["policies"]
        for policy in scenario.policies:
            result.checked[policy.name] = check(expectations, report[policy.name], comparison.runs[policy.name])
        if update:
            _write_found(path, result)
    except (InvalidScenario, OSError) as error:
        text = str(error)
        result.problem = text if text.startswith(str(path)) else f"{path}: {text}"
    return result


def _expectations(scenario: Scenario, path: Path) -> list[Expectation]:
    if not scenario.expectations:
        raise InvalidScenario(f"{path}: expect: no expectation is given")
    if not scenario.policies:
        raise InvalidScenario(f"{path}: policies: no policy is given")
    return [parse_expectation(text, f"expect[{index}]") for index, text in enumerate(scenario.expectations)]


# -- output -----------------------------------------------------------------------------------------------------------
def _show(result: PolicyTestResult) -> None:
    if result.problem:
        click.echo(f"ERROR {result.problem}", err=True)
        return
    for policy, found in result.checked.items():
        for each in found:
            click.echo(f"{'ok  ' if each.holds else 'FAIL'} {result.path} {policy}: {each.expectation.text}")
            if not each.holds:
                for line in explained(each):
                    click.echo(f"       {line}")


def explained(checked: CheckedExpectation) -> list[str]:
    each = checked.expectation
    lines = [f"expected: {each.metric} {each.operator} {_number(each.value)}", f"found:    {_number(checked.found)}"]
    if checked.contributors:
        lines.append(f"jobs:     {', '.join(checked.contributors)}")
    return lines


def _number(value: float | None) -> str:
    if value is None:
        return "nothing: the job has not got so far"
    return f"{value:.6f}".rstrip("0").rstrip(".")


def junit_text(results: list[PolicyTestResult]) -> str:
    """One test suite for each file, one test case for each policy and expectation."""
    suites = []
    for result in results:
        cases = []
        for policy, found in result.checked.items():
            for each in found:
                place, name = quoteattr(f"{result.path}.{policy}"), quoteattr(each.expectation.text)
                head = f"<testcase classname={place} name={name}"
                if each.holds:
                    cases.append(f"    {head}/>")
                    continue
                message = quoteattr(f"found {_number(each.found)}")
                body = escape("\n".join(explained(each)))
                cases.append(f"    {head}>\n      <failure message={message}>{body}</failure>\n    </testcase>")
        if result.problem:
            place, problem = quoteattr(str(result.path)), quoteattr(result.problem)
            cases.append(f'    <testcase classname={place} name="scenario"><error message={problem}/></testcase>')
        counts = f'tests="{len(cases)}" failures="{len(result.failures)}" errors="{int(bool(result.problem))}"'
        inner = "\n".join(cases)
        suites.append(f"  <testsuite name={quoteattr(str(result.path))} {counts}>\n{inner}\n  </testsuite>")
    return '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n' + "\n".join(suites) + "\n</testsuites>\n"


def _write_found(path: Path, result: PolicyTestResult) -> None:
    """The block `found:` at the end of the file is replaced; all else, comments included, stays as it is."""
    text = re.sub(r"(?m)^found:[^\n]*\n(?:[ \t]+[^\n]*\n?|\n)*", "", path.read_text(encoding="utf-8"))
    lines = ["found:"]
    for policy, found in result.checked.items():
        lines.append(f"  {policy}:")
        metrics = {each.expectation.metric: each.found for each in found}
        lines += [f"    {metric}: {'null' if value is None else _number(value)}" for metric, value in metrics.items()]
    path.write_text(text.rstrip("\n") + "\n" + "\n".join(lines) + "\n", encoding="utf-8")
