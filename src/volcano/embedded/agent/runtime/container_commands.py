"""Decides what a container's process is on this machine: its image's rows, its virtual environment, or Apptainer."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from volcano.api.kubelet import AgentContainer
from volcano.embedded.agent.containers import apptainer
from volcano.embedded.agent.containers.images import CommandLine, NoImage, command_line
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.containers.well_known_images import install_hint
from volcano.embedded.agent.runtime.orders import Isolation


class ContainerCommands:
    """The command lines of one agent's containers, by the rows that apply when they start."""

    def __init__(self, settings: ProcessSettings) -> None:
        self._settings = settings

    def of(self, container: AgentContainer) -> CommandLine | NoImage:
        """What the container runs; an image for Apptainer becomes a command of Apptainer."""
        line = self._line(container)
        if isinstance(line, NoImage) or not line.apptainer:
            return line
        return self._in_apptainer(container, line, line.argv, has_command=line.has_command)

    def of_exec(self, container: AgentContainer, argv: Sequence[str]) -> CommandLine:
        """A further command in a container; in the same image where Apptainer runs it."""
        line = self._line(container)
        if isinstance(line, NoImage):  # its row was removed from the file while it runs
            return CommandLine(tuple(argv))
        if line.apptainer:
            found = self._in_apptainer(container, line, argv, has_command=True)
            return found if isinstance(found, CommandLine) else CommandLine(tuple(argv))
        return msgspec.structs.replace(line, argv=tuple(argv))

    def _line(self, container: AgentContainer) -> CommandLine | NoImage:
        return command_line(
            container.image,
            container.command,
            container.args,
            self._settings.current_images(),
            is_program=lambda program: _which(program) is not None,
            is_venv=is_virtual_environment,
        )

    def _in_apptainer(
        self, container: AgentContainer, line: CommandLine, argv: Sequence[str], *, has_command: bool
    ) -> CommandLine | NoImage:
        found = (_which(each) for each in apptainer.PROGRAMS)
        program = self._settings.apptainer or next((each for each in found if each is not None), None)
        if program is None:
            message = f"Container image {line.apptainer!r} needs Apptainer or Singularity, and neither is installed: "
            return NoImage("ErrImageNeverPull", message + apptainer.INSTALL)
        words = apptainer.apptainer_command(
            program,
            line.apptainer,
            argv,
            has_command=has_command,
            mounted=[mount.mount_path for mount in container.volume_mounts],
            working_dir=container.working_dir or line.working_dir,
        )
        return msgspec.structs.replace(line, argv=words, working_dir="")


def start_error(error: Exception, image: str, line: CommandLine) -> str:
    """Why a container did not start; a missing program of a well-known image names the command that installs it."""
    hint = install_hint(image)
    is_missing = _which(line.argv[0]) is None and _which(f"{line.venv}/bin/{line.argv[0]}") is None
    return f"{error}; {hint}" if hint and is_missing else str(error)


def is_virtual_environment(path: str) -> bool:
    return (Path(path) / "pyvenv.cfg").is_file()


def _which(program: str) -> str | None:
    return shutil.which(program, path=Isolation().path)
