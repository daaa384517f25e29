"""What /version answers: the Kubernetes API level this server speaks."""

from __future__ import annotations

import platform
import sys
from typing import Final

from volcano import __version__

VERSION: Final = {
    "major": "1",
    "minor": "36",
    "gitVersion": f"v1.36.3+volcano-{__version__}",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": f"{sys.implementation.name}{platform.python_version()}",
    "compiler": sys.implementation.name,
    "platform": f"{sys.platform}/{platform.machine()}",
}
