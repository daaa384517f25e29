"""Figures that `volcano bench` compares with are those of the benchmarks page."""

import re
from pathlib import Path

from volcano.app.bench_published import EMBEDDED, ON_KUBERNETES, published_rate

PAGE = Path(__file__).parents[3] / "docs" / "benchmarks.md"


def test_the_page_has_the_same_figures():
    section = PAGE.read_text().split("## Your own cluster")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d+) x (\d+) \| (\S+) \| (\S+) \|$", section, re.M)
    shown = {f"{jobs}x{pods}": (on_kubernetes, embedded) for jobs, pods, on_kubernetes, embedded in rows}
    shapes = ON_KUBERNETES.keys() | EMBEDDED.keys()
    expected = {
        shape: tuple(
            "-" if (rate := published_rate(shape, is_embedded=each)) is None else f"{rate:g}" for each in (False, True)
        )
        for shape in shapes
    }
    assert shown == expected
