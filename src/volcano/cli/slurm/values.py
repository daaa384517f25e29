"""Values as Slurm writes them: times, amounts of memory, GPUs, arrays, lists of hosts, patterns of file names. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final, NamedTuple

UNITS: Final = {"K": 1, "M": 2**10, "G": 2**20, "T": 2**30}
"""Kibibytes of each letter; without one, Slurm means megabytes."""
MAX_ARRAY_SIZE: Final = 1001
MAX_HOSTS: Final = 1024
UNLIMITED: Final = ("UNLIMITED", "INFINITE", "-1")


class ValueRefused(ValueError):
    """A value that cannot be used; the message says why."""


class ArraySpec(NamedTuple):
    """Indexes of an array, and how many run at a time; 0: all."""

    indexes: tuple[int, ...]
    limit: int = 0


def parse_time(text: str) -> timedelta | None:
    """minutes, minutes:seconds, hours:minutes:seconds, days-hours[:minutes[:seconds]]; None: no limit."""
    if text.upper() in UNLIMITED or text == "0":
        return None
    days, dash, rest = text.rpartition("-")
    parts = rest.split(":")
    if not all(part.isdecimal() and len(part) <= 9 for part in parts) or (dash and not days.isdecimal()):
        raise ValueRefused("is no time limit; it is written 90, 90:00, 1:30:00, 1-12 or 1-12:30:00")
    numbers = [int(part) for part in parts]
    if dash and len(numbers) <= 3:
        hours, minutes, seconds = (*numbers, 0, 0)[:3]
        return timedelta(days=int(days), hours=hours, minutes=minutes, seconds=seconds)
    match numbers:
        case [minutes]:
            return timedelta(minutes=minutes)
        case [minutes, seconds]:
            return timedelta(minutes=minutes, seconds=seconds)
        case [hours, minutes, seconds]:
            return timedelta(hours=hours, minutes=minutes, seconds=seconds)
    raise ValueRefused("is no time limit; it is written 90, 90:00, 1:30:00, 1-12 or 1-12:30:00")


def format_time(span: timedelta | None) -> str:
    """As squeue shows it: 1-02:03:04, 2:03:04, 3:04."""
    if span is None:
        return "UNLIMITED"
    seconds = max(0, int(span.total_seconds()))
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    if days:
        return f"{days}-{hours:02}:{minutes:02}:{seconds:02}"
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def parse_memory(text: str) -> int:
    """Kibibytes of `4G`, `4000M`, `4000`, `1.5G`, `4GB`."""
    match = re.fullmatch(r"(\d{1,12}(?:\.\d{1,6})?)([KMGT]?)(?:I?B)?", text.upper())
    if match is None:
        raise ValueRefused("is no amount of memory; it is written 4G, 4000M or 4000 (megabytes)")
    kibibytes = int(float(match[1]) * UNITS[match[2] or "M"])
    if kibibytes == 0:
        raise ValueRefused("would be all memory of a node, which no request can express; name an amount")
    return kibibytes


def parse_count(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or int(text) == 0:
        raise ValueRefused("is no number above 0")
    return int(text)


def parse_nodes(text: str) -> int:
    """`2`, or the least of `2-4`."""
    least, _, most = text.partition("-")
    count = parse_count(least)
    if most and parse_count(most) < count:
        raise ValueRefused("has a maximum below its minimum")
    return count


def parse_gpus(text: str, *, generic: bool) -> int:
    """`2`; in --gres `gpu`, `gpu:2`. The type of a GPU (`gpu:a100:2`, `a100:2`) is refused."""
    total = 0
    for part in text.split(","):
        words = part.split(":")
        if generic and words.pop(0) != "gpu":
            raise ValueRefused(f"asks for {part.split(':')[0]!r}; only gpu is known, as nvidia.com/gpu")
        if generic and words and words[0] == "":
            words.pop(0)
        if len(words) > 1 or (words and not words[0].isdecimal()):
            raise ValueRefused(
                "names a type of GPU, which cannot be requested; ask for gpu:COUNT and choose nodes by --constraint"
            )
        total += parse_count(words[0]) if words else 1
    return total


def parse_array(text: str) -> ArraySpec:
    """`1-100%10`, `0,3,7-9`, `0-20:5`."""
    ranges, percent, limit = text.partition("%")
    found: dict[int, None] = {}
    for part in ranges.split(","):
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?", part)
        if match is None:
            raise ValueRefused("is no array; it is written 1-100, 0,3,7-9, 0-20:5, and %10 for at most 10 at a time")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if last < first or step == 0:
            raise ValueRefused("has a range that ends before it begins")
        if (last - first) // step >= MAX_ARRAY_SIZE or len(found) > MAX_ARRAY_SIZE:
            raise ValueRefused(f"has more than {MAX_ARRAY_SIZE} indexes")
        found |= dict.fromkeys(range(first, last + 1, step))
    if len(found) > MAX_ARRAY_SIZE:
        raise ValueRefused(f"has more than {MAX_ARRAY_SIZE} indexes")
    return ArraySpec(tuple(sorted(found)), parse_count(limit) if percent else 0)


def format_array(indexes: list[int], limit: int = 0) -> str:
    """`1-5,7%2`: what squeue shows of an array's jobs that have not started."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = [str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs]
    return ",".join(parts) + (f"%{limit}" if limit else "")


def expand_hosts(text: str) -> list[str]:
    """`node[1-3,5],other` as a list; leading zeros are kept."""
    hosts: list[str] = []
    for match in re.finditer(r"([^,\[\]]*)(?:\[([^\]]*)\])?([^,\[\]]*)(?:,|$)", text):
        prefix, inside, suffix = match[1], match[2], match[3]
        if not match[0] or not (prefix or inside):
            continue
        if inside is None:
            hosts.append(prefix + suffix)
            continue
        for part in inside.split(","):
            first, dash, last = part.partition("-")
            if not first.isdecimal() or (dash and not last.isdecimal()) or len(first) > 6 or len(last) > 6:
                raise ValueRefused("is no list of nodes; it is written node1,node2 or node[1-3,5]")
            numbers = range(int(first), int(last or first) + 1)
            if len(hosts) + len(numbers) > MAX_HOSTS:
                raise ValueRefused(f"names more than {MAX_HOSTS} nodes")
            hosts += [f"{prefix}{number:0{len(first)}}{suffix}" for number in numbers]
    if not hosts:
        raise ValueRefused("names no node")
    return hosts


def fill_pattern(pattern: str, values: Mapping[str, str]) -> str:
    """A file name with %j, %4j and so on filled in; %% is a percent sign, and a backslash switches all of it off."""
    if "\\" in pattern:
        return pattern.replace("\\", "")

    def filled(match: re.Match[str]) -> str:
        width, letter = match[1], match[2]
        if letter == "%":
            return "%"
        value = values.get(letter)
        if value is None:
            return match[0]
        return value.zfill(min(int(width), 10)) if width and value.isdecimal() else value

    return re.sub(r"%(\d{0,2})([%A-Za-z])", filled, pattern)
