"""What well-known images mean on a machine without containers: their default program, and how to install them. Pure."""

from __future__ import annotations

import fnmatch
from typing import Final

import msgspec


class WellKnown(msgspec.Struct, frozen=True):
    """A family of images. Patterns are compared with the name without registry, tag and digest."""

    patterns: tuple[str, ...]
    program: str = ""  # what runs without a command
    install: str = ""  # the command that brings its programs to the machine
    venv: str = ""  # the virtual environment that this command makes, used where it exists
    has_busybox: bool = False
    is_entrypoint: bool = False  # arguments are the program's, not a command instead of it


def _in_venv(patterns: tuple[str, ...], name: str, packages: str) -> WellKnown:
    venv = f"/opt/{name}"
    return WellKnown(patterns, install=f"python3 -m venv {venv} && {venv}/bin/pip install {packages}", venv=venv)


WELL_KNOWN: Final = (
    WellKnown(("busybox", "alpine", "bash"), "sh", "apt-get install busybox", has_busybox=True),
    WellKnown(
        ("curlimages/curl", "*/curl", "curl"), "curl", "apt-get install curl", has_busybox=True, is_entrypoint=True
    ),
    WellKnown(("debian", "ubuntu", "centos", "fedora", "rockylinux", "almalinux"), "sh"),
    WellKnown(("python",), "python3", "apt-get install python3"),
    _in_venv(("apache/spark*", "spark", "spark-py", "*pyspark*"), "spark", "pyspark"),
    _in_venv(("rayproject/*", "ray", "ray-ml"), "ray", "'ray[default]'"),
    _in_venv(("pytorch/*", "pytorch", "*/pytorch"), "torch", "torch"),
    _in_venv(("tensorflow/*", "tensorflow", "*/tensorflow"), "tf", "tensorflow-cpu"),
    WellKnown(
        ("mpioperator/*", "*openmpi*", "*example-mpi*", "*/mpi"), install="apt-get install openmpi-bin openssh-server"
    ),
)


def well_known(image: str) -> WellKnown | None:
    """The family of an image; the official images without a namespace, others with theirs."""
    name = bare_name(image)
    for each in WELL_KNOWN:
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in each.patterns):
            return each
    return None


def bare_name(image: str) -> str:
    """An image's name without tag, digest and Docker Hub's registry."""
    bare = image.partition("@")[0].removeprefix("docker.io/").removeprefix("library/")
    return bare.rpartition(":")[0] if ":" in bare.rpartition("/")[2] else bare


def install_hint(image: str) -> str:
    """How the programs of an image come to this machine; empty where that is not known."""
    found = well_known(image)
    if found is None or not found.install:
        return ""
    return f"images are not pulled here; the programs of {bare_name(image)} come with: {found.install}"
