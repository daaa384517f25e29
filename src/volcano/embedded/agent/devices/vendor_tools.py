"""Runs the tools of accelerator vendors, bounded in time and output. What they print is read by vendor_reports."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import threading
from typing import Final

MAX_TOOL_SECONDS: Final = 10.0
"""A tool whose driver hangs is killed after this time."""
MAX_TOOL_OUTPUT_BYTES: Final = 1024 * 1024
MAX_QUOTED_CHARACTERS: Final = 200
NVML_QUERY: Final = "volcano.embedded.agent.devices.nvml_query"


class ToolFailed(Exception):
    """A tool that exists did not say which cards there are; the text names it and the reason."""


def has_tool(name: str) -> bool:
    return shutil.which(name) is not None


def has_nvml() -> bool:
    """Whether the package nvidia-ml-py is installed."""
    return importlib.util.find_spec("pynvml") is not None


def ask_nvml() -> str:
    """In a process of its own: a library of a driver may hang or end the process."""
    return ask(sys.executable, "-m", NVML_QUERY)


def ask(*argv: str) -> str:
    """What the tool prints; ToolFailed when it fails, takes too long or prints too much."""
    name = argv[-1].rpartition(".")[2] if argv[0] == sys.executable else argv[0]
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "LC_ALL": "C"},
        )
    except OSError as error:
        raise ToolFailed(f"{name} cannot be run: {error.strerror}") from error
    late = threading.Event()

    def end_late() -> None:
        late.set()
        _kill(process)

    timer = threading.Timer(MAX_TOOL_SECONDS, end_late)
    timer.start()
    try:
        assert process.stdout is not None, "a pipe was asked for"
        output = process.stdout.read(MAX_TOOL_OUTPUT_BYTES + 1)
        if len(output) > MAX_TOOL_OUTPUT_BYTES:
            _kill(process)
        process.stdout.close()
        code = process.wait()
    finally:
        timer.cancel()
    if late.is_set():
        raise ToolFailed(f"{name} did not answer within {MAX_TOOL_SECONDS:g} s")
    if len(output) > MAX_TOOL_OUTPUT_BYTES:
        raise ToolFailed(f"{name} printed more than {MAX_TOOL_OUTPUT_BYTES // 1024} KiB")
    text = output.decode(errors="replace")
    if code != 0:
        said = " ".join(text.split())[:MAX_QUOTED_CHARACTERS]
        raise ToolFailed(f"{name} ended with {code}{f': {said}' if said else ''}")
    return text


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Also what the tool started: it may have the pipe open."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass  # it has ended
