"""Where things are and how big: the settings of the embedded system, parsed once."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from volcano.machinery.kubeconfig import embedded_data_directory

DEFAULT_PORT: Final = 6443
STORE: Final = "volcano.db"
HISTORY_FILE: Final = "history.db"
SCHEDULER_CONFIGMAP: Final = "volcano-system/volcano-scheduler-configmap:volcano-scheduler.conf"


def data_directory(given: str | Path | None = None) -> Path:
    """`--data-dir`, else $VOLCANO_DATA_DIR, else ~/.local/share/volcano."""
    if given:
        return Path(given).expanduser().absolute()
    return embedded_data_directory()
