"""The client families, and the environments in which their programs run.

`python -m tests.contract.families.environments` installs what is missing into ~/.cache/volcano/families.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
CACHE = Path.home() / ".cache" / "volcano" / "families"
PREPARE = "python -m tests.contract.families.environments"


@dataclass(frozen=True)
class Family:
    """One client library: what it is called, its program, and the package that it needs."""

    name: str
    program: str
    package: str
    module: str = ""
    """The module to import where the package is one of the project's own test tools."""

    @property
    def _folder(self) -> Path:
        return CACHE / Path(self.program).stem

    def command(self) -> list[str] | None:
        """How to run the program; None until its environment is installed."""
        path = str(PROGRAMS / self.program)
        if self.module:
            return [sys.executable, path] if importlib.util.find_spec(self.module) else None
        if self.program.endswith(".js"):
            is_there = shutil.which("node") and (self._folder / "node_modules" / self.name).is_dir()
            return ["node", path] if is_there else None
        python = self._folder / "bin" / "python"
        return [str(python), path] if python.exists() else None

    def environment(self) -> dict[str, str]:
        return {"NODE_PATH": str(self._folder / "node_modules")}

    def install(self) -> None:
        if self.command() is not None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        if self.program.endswith(".js"):
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", self.package], cwd=self._folder, check=True)
        else:
            subprocess.run([sys.executable, "-m", "venv", self._folder], check=True)
            subprocess.run([self._folder / "bin" / "pip", "install", "-q", self.package], check=True)


FAMILIES = (
    Family("official Python client", "official_python.py", "kubernetes", "kubernetes"),
    Family("lightkube", "lightkube_program.py", "lightkube", "lightkube"),
    Family("kr8s", "kr8s_program.py", "kr8s"),
    Family("@kubernetes/client-node", "client_node.js", "@kubernetes/client-node@1.3.0"),
)


if __name__ == "__main__":
    for each in FAMILIES:
        each.install()
        print(f"{each.name}: {'ready' if each.command() else 'not installed'}")
