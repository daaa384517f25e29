"""Property tests: every one carries the marker `property`, and the seed of a run is chosen and printed.

$HYPOTHESIS_PROFILE chooses the profile. `tests` is the default; `thorough` runs every property test with
`THOROUGH_FACTOR` times as many examples, whether it names a number of its own or not (`make properties`).
"""

from __future__ import annotations

import os
import secrets

import pytest
from hypothesis import is_hypothesis_test, settings

THOROUGH_FACTOR = 20
SEED_BITS = 32
THOROUGH_TIMEOUT_SECONDS = 3600

# A deadline would fail a test because the machine is busy. Nothing is derandomized: each run looks at other examples,
# and the printed seed repeats them.
settings.register_profile("tests", deadline=None, derandomize=False, print_blob=True)
settings.register_profile("thorough", settings.get_profile("tests"))
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "tests"))


def is_thorough() -> bool:
    return settings.get_current_profile_name() == "thorough"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """One seed for the run, also when it is spread over workers: xdist hands the controller's options to them."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(secrets.randbits(SEED_BITS))


def seed_line(config: pytest.Config) -> str:
    seed = config.option.hypothesis_seed
    return f"property tests: profile {settings.get_current_profile_name()}, repeat with --hypothesis-seed={seed}"


def pytest_report_header(config: pytest.Config) -> str:
    return seed_line(config)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        terminalreporter.write_line(seed_line(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    multiplied: set[int] = set()
    for item in items:
        test = getattr(item, "obj", None)
        if test is None or not is_hypothesis_test(test):
            continue
        item.add_marker(pytest.mark.property)
        if is_thorough():
            item.add_marker(pytest.mark.timeout(THOROUGH_TIMEOUT_SECONDS))
            multiply_examples(item, multiplied)


def multiply_examples(item: pytest.Item, multiplied: set[int]) -> None:
    """Once per test: the cases of a parametrized test share one function, and so its settings."""
    machine = getattr(item, "cls", None)
    if machine is not None and isinstance(getattr(machine, "settings", None), settings):
        owner, name = machine, "settings"
    else:
        owner, name = getattr(item.obj, "__func__", item.obj), "_hypothesis_internal_use_settings"
    if id(owner) in multiplied:
        return
    multiplied.add(id(owner))
    found: settings = getattr(owner, name)
    setattr(owner, name, settings(found, max_examples=found.max_examples * THOROUGH_FACTOR))
