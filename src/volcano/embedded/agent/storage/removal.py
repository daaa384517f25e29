"""Removes folders that pods used; some of the folders in them may have no permissions at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from typing import Final

ENTERABLE: Final = 0o700


def remove_tree(folder: Path) -> None:
    """Remove the folder with everything in it. The kernel makes folders without any permission below its overlays."""
    try:
        shutil.rmtree(folder)
    except PermissionError:
        for place, names, _ in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)
                if not os.path.islink(path):
                    with contextlib.suppress(OSError):
                        os.chmod(path, ENTERABLE)
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
