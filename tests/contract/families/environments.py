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
INSTALL_SECONDS = 900


@dataclass(frozen=True)
class Family:
    """One client library with its program; each language has a subclass that knows how to install and run it."""

    name: str
    program: str
    """A file below `programs`; its stem names the environment."""

    @property
    def path(self) -> Path:
        return PROGRAMS / self.program

    @property
    def folder(self) -> Path:
        return CACHE / self.path.stem

    @property
    def tool(self) -> str:
        """The program that installs it."""
        return sys.executable

    def command(self) -> list[str] | None:
        """How to run the program; None until its environment is installed."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        return {}

    def steps(self) -> list[list[str]]:
        """The commands that install it, run in its folder."""
        raise NotImplementedError

    def install(self) -> None:
        if self.command() is not None or shutil.which(self.tool) is None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        for step in self.steps():
            subprocess.run(step, cwd=self.folder, check=True, timeout=INSTALL_SECONDS)


@dataclass(frozen=True)
class InTestTools(Family):
    """A Python package that the project's own test tools include."""

    module: str

    def command(self) -> list[str] | None:
        return [sys.executable, str(self.path)] if importlib.util.find_spec(self.module) else None

    def steps(self) -> list[list[str]]:
        return []


@dataclass(frozen=True)
class Python(Family):
    packages: tuple[str, ...]

    def command(self) -> list[str] | None:
        python = self.folder / "bin" / "python"
        return [str(python), str(self.path)] if python.exists() else None

    def steps(self) -> list[list[str]]:
        return [
            [sys.executable, "-m", "venv", str(self.folder)],
            [str(self.folder / "bin" / "pip"), "install", "-q", *self.packages],
        ]


@dataclass(frozen=True)
class JavaScript(Family):
    package: str

    @property
    def tool(self) -> str:
        return "npm"

    def command(self) -> list[str] | None:
        is_there = shutil.which("node") and (self.folder / "node_modules" / self.name).is_dir()
        return ["node", str(self.path)] if is_there else None

    def environment(self) -> dict[str, str]:
        return {"NODE_PATH": str(self.folder / "node_modules")}

    def steps(self) -> list[list[str]]:
        return [["npm", "install", "--no-audit", "--no-fund", self.package]]


@dataclass(frozen=True)
class Java(Family):
    """A folder with a pom.xml and one source file, which `java` compiles as it starts."""

    source: str

    @property
    def tool(self) -> str:
        return "mvn"

    def command(self) -> list[str] | None:
        is_there = shutil.which("java") and any((self.folder / "lib").glob("*.jar"))
        return ["java", "-cp", f"{self.folder}/lib/*", str(self.path / self.source)] if is_there else None

    def steps(self) -> list[list[str]]:
        pom, library = str(self.path / "pom.xml"), f"-DoutputDirectory={self.folder}/lib"
        return [["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", library]]


@dataclass(frozen=True)
class Go(Family):
    """A folder with a Go module."""

    @property
    def tool(self) -> str:
        return "go"

    def command(self) -> list[str] | None:
        binary = self.folder / self.program
        return [str(binary)] if binary.exists() else None

    def steps(self) -> list[list[str]]:
        return [["go", "build", "-C", str(self.path), "-o", str(self.folder / self.program), "."]]


FAMILIES: tuple[Family, ...] = (
    InTestTools("official Python client", "official_python.py", "kubernetes"),
    InTestTools("lightkube", "lightkube_program.py", "lightkube"),
    Python("kr8s", "kr8s_program.py", ("kr8s",)),
    Python("kopf", "kopf_program.py", ("kopf", "kubernetes")),
    JavaScript("@kubernetes/client-node", "client_node.js", "@kubernetes/client-node@1.3.0"),
    Java("fabric8", "fabric8", "Fabric8.java"),
    Go("client-go", "client_go"),
)


if __name__ == "__main__":
    for each in FAMILIES:
        each.install()
        print(f"{each.name}: {'ready' if each.command() else f'not installed; it needs {each.tool}'}")
