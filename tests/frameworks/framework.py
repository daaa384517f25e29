"""What a framework's module declares, and where all modules are found."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.frameworks import suite
from tests.running_server import Client

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "frameworks"
SMALL_MEGABYTES = 50
"""CI runs what downloads less than this: a minute or two in all."""


def exit_codes_suffice(_api: Client) -> None:
    """For pages whose lines and expected output say all."""


@dataclass(frozen=True)
class Framework:
    """One row of the table: the page docs/frameworks/NAME.md is installed, run and compared, then `works` is asked."""

    name: str
    megabytes: int
    """What its installation downloads."""
    programs: tuple[str, ...] = ()
    """Programs that the machine must have, as `command` or `command=debian-package`; the row is skipped without them."""
    works: Callable[[Client], None] = exit_codes_suffice
    """What must hold in the API once the page's lines have run; raises AssertionError."""
    install_seconds: int = 1200
    run_seconds: int = 300
    """The limit of each block of the page."""

    @property
    def page(self) -> Path:
        return PAGES / f"{self.name}.md"

    @property
    def is_small(self) -> bool:
        return self.megabytes < SMALL_MEGABYTES


def all_frameworks() -> list[Framework]:
    names = sorted(module.name for module in pkgutil.iter_modules(suite.__path__))
    return [importlib.import_module(f"{suite.__name__}.{name}").FRAMEWORK for name in names]
