"""Values as Slurm writes them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from volcano.cli.slurm.values import (
    ArraySpec,
    ValueRefused,
    expand_hosts,
    fill_pattern,
    format_array,
    format_time,
    parse_array,
    parse_gpus,
    parse_memory,
    parse_time,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 5400), ("90:30", 5430), ("1:30:00", 5400), ("1-12", 129600), ("1-12:30", 131400), ("2-00:00:01", 172801)],
)
def test_times(text: str, seconds: int) -> None:
    assert parse_time(text) == timedelta(seconds=seconds)


def test_no_limit_and_no_time() -> None:
    assert parse_time("UNLIMITED") is None and parse_time("0") is None
    for text in ("tomorrow", "1:2:3:4", "x-1", "1-1:2:3:4", ""):
        with pytest.raises(ValueRefused):
            parse_time(text)


def test_times_are_shown_as_squeue_shows_them() -> None:
    spans = [timedelta(seconds=59), timedelta(minutes=61), timedelta(days=1, hours=2, seconds=3), None]
    assert [format_time(span) for span in spans] == ["0:59", "1:01:00", "1-02:00:03", "UNLIMITED"]


@pytest.mark.parametrize(
    ("text", "kibibytes"),
    [("4G", 4 * 2**20), ("4000", 4000 * 2**10), ("512K", 512), ("1.5g", 3 * 2**19), ("2T", 2**31), ("4GB", 4 * 2**20)],
)
def test_amounts_of_memory(text: str, kibibytes: int) -> None:
    assert parse_memory(text) == kibibytes


def test_all_memory_of_a_node_is_refused() -> None:
    with pytest.raises(ValueRefused, match="all memory of a node"):
        parse_memory("0")


@pytest.mark.parametrize(
    ("text", "indexes", "limit"),
    [("1-4", (1, 2, 3, 4), 0), ("0,3,7-9", (0, 3, 7, 8, 9), 0), ("0-20:5%2", (0, 5, 10, 15, 20), 2), ("3", (3,), 0)],
)
def test_arrays(text: str, indexes: tuple[int, ...], limit: int) -> None:
    assert parse_array(text) == ArraySpec(indexes, limit)


@pytest.mark.parametrize("text", ["", "a", "4-1", "1-2:0", "0-5000", "1%0", "1-3%x"])
def test_what_is_no_array(text: str) -> None:
    with pytest.raises(ValueRefused):
        parse_array(text)


def test_indexes_are_shown_in_ranges() -> None:
    assert format_array([1, 2, 3, 7], 2) == "1-3,7%2"


@pytest.mark.parametrize(("text", "count"), [("gpu:2", 2), ("gpu", 1), ("gpu:1,gpu:2", 3)])
def test_gpus_of_gres(text: str, count: int) -> None:
    assert parse_gpus(text, generic=True) == count


@pytest.mark.parametrize("text", ["gpu:a100:2", "shard:1", "gpu:a100"])
def test_types_of_gpus_and_other_resources_are_refused(text: str) -> None:
    with pytest.raises(ValueRefused):
        parse_gpus(text, generic=True)


def test_lists_of_hosts() -> None:
    assert expand_hosts("node[01-03,5],other") == ["node01", "node02", "node03", "node5", "other"]


def test_patterns_of_file_names() -> None:
    values = {"j": "12", "A": "10", "a": "3", "x": "name"}
    assert fill_pattern("%x-%j_%A_%a.out", values) == "name-12_10_3.out"
    assert fill_pattern("%4j-100%%-%q", values) == "0012-100%-%q"
    assert fill_pattern("\\%j", values) == "%j"
