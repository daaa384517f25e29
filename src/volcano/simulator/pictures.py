"""Pictures (PNG) of the plots of report.html, taken by a headless Chromium (docs/decisions)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

PLOTS: Final = {"utilisation": 470, "shares": 470, "jobs": 470, "waits": 440, "gantt": 680}
"""The plots of the page, with the height of the window that holds them."""
WIDTH: Final = 1100
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_SECONDS: Final = 120


class NoBrowser(Exception):
    """No program that can draw the page is installed, or it failed; the message says what to do."""


def browser() -> str:
    found = next((path for name in PROGRAMS if (path := shutil.which(name))), None)
    if found is None:
        raise NoBrowser(f"--png needs a browser to draw with: install one of {', '.join(PROGRAMS)}")
    return found


def write_pictures(page: Path, policies: Iterable[str]) -> list[Path]:
    """One file for each policy and plot, beside the page."""
    program, written = browser(), []
    for policy in policies:
        for plot, height in PLOTS.items():
            target = page.parent / f"{policy}-{plot}.png"
            _take(program, f"{page.resolve().as_uri()}#{urlencode({'only': plot, 'policy': policy})}", target, height)
            written.append(target)
    return written


def _take(program: str, address: str, target: Path, height: int) -> None:
    with tempfile.TemporaryDirectory() as profile:
        command = [
            program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
            f"--window-size={WIDTH},{height}", f"--screenshot={target}", address,
        ]  # fmt: skip
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise NoBrowser(f"{program} did not draw {target.name} within {TIMEOUT_SECONDS} s") from error
    if done.returncode != 0 or not target.exists():
        raise NoBrowser(f"{program} could not draw {target.name}: {done.stderr.strip()[-200:]}")
