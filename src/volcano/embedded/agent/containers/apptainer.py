"""The command that runs a container's image in Apptainer or Singularity, where one is installed. Pure.

The process stays in the namespaces and cgroups that the agent made: limits, network and volumes are the pod's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

PROGRAMS: Final = ("apptainer", "singularity")
SCHEMES: Final = ("docker://", "oras://", "library://", "shub://", "docker-archive:", "oci-archive:")
POD_FILES: Final = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/dev/shm", "/tmp", "/var/tmp")
INSTALL: Final = "install Apptainer (https://apptainer.org; Debian: apt-get install apptainer where it is packaged)"


def is_apptainer_image(image: str) -> bool:
    """Whether the name says by itself that it is for Apptainer: a scheme, or a SIF file."""
    return image.startswith(SCHEMES) or (image.startswith("/") and image.endswith(".sif"))


def apptainer_command(
    program: str,
    image: str,
    argv: Sequence[str],
    *,
    has_command: bool,
    mounted: Iterable[str] = (),
    working_dir: str = "",
) -> tuple[str, ...]:
    """`exec` with the container's command, else `run` with its arguments; `mounted` are the paths of its volumes."""
    binds = ",".join(dict.fromkeys((*POD_FILES, *mounted)))
    options = ["--userns", "--no-home", "--writable-tmpfs", "--bind", binds]
    if working_dir:
        options += ["--pwd", working_dir]
    verb = "exec" if has_command else "run"
    return (program, "--quiet", verb, *options, image, *argv)
