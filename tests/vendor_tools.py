"""Plays the tools of accelerator vendors: scripts in a folder for PATH that print what real ones print."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path


def a_tool(folder: Path, name: str, script: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tool = folder / name
    fresh = folder / f".{name}"  # replaced at once: it may be running
    fresh.write_text(f"#!/bin/sh\n{script}\n")
    fresh.chmod(0o755)
    fresh.rename(tool)
    return tool


def gpu_uuid(index: int) -> str:
    return f"GPU-{index:08x}-1111-2222-3333-444444444444"


def nvidia_line(index: int) -> str:
    return f"{index}, {gpu_uuid(index)}, 81559, 00000000:{0x10 + index:02X}:00.0, NVIDIA A100-SXM4-80GB"


def nvidia_smi(folder: Path, cards: Iterable[int]) -> Path:
    """A tool that lists these cards, and fails for other questions than the documented one."""
    lines = "\n".join(nvidia_line(index) for index in cards)
    return a_tool(
        folder,
        "nvidia-smi",
        f"""
case "$1 $2" in
"--query-gpu="*" --format=csv,noheader,nounits") cat <<'END'
{lines}
END
;;
*) echo "Invalid combination of input arguments." ; exit 6 ;;
esac""",
    )
