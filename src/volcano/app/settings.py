"""Where things are and how big: the settings of the embedded system, parsed once."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

DEFAULT_PORT: Final = 6443
SCHEDULER_CONFIGMAP: Final = "volcano-system/volcano-scheduler-configmap:volcano-scheduler.conf"


def data_directory(given: str | Path | None = None) -> Path:
    """`--data-dir`, else $VOLCANO_DATA_DIR, else ~/.local/share/volcano."""
    if given:
        return Path(given).expanduser().absolute()
    if os.environ.get("VOLCANO_DATA_DIR"):
        return Path(os.environ["VOLCANO_DATA_DIR"]).expanduser().absolute()
    return Path.home() / ".local" / "share" / "volcano"
