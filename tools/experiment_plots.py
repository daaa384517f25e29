"""The plots of docs/experiments.md: SVG files beside the page."""

# ruff: noqa: E501 (lines of pictures)
from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

PLOTS = Path(__file__).resolve().parents[1] / "docs/experiments"
COLOURS = ("#2f6fb2", "#d9822b", "#3d9970", "#a05fb4", "#b5483a", "#7a7f87")
WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 240, 60, 40, 20


def bars(name: str, title: str, groups: Sequence[str], series: Mapping[str, Sequence[float]]) -> None:
    top = max((value for values in series.values() for value in values), default=1.0) or 1.0
    wide = (WIDTH - LEFT - 20) / len(groups)
    out = []
    for index, values in enumerate(series.values()):
        for place, value in enumerate(values):
            width = wide * 0.7 / len(series)
            x, height = LEFT + place * wide + wide * 0.15 + index * width, value / top * (HEIGHT - TOP - BOTTOM - 16)
            y = HEIGHT - BOTTOM - height
            out.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{width - 2:.1f}" height="{height:.1f}" fill="{COLOURS[index]}"/>'
            )
            out.append(f'<text x="{x + width / 2:.1f}" y="{y - 4:.1f}" text-anchor="middle">{value:.4g}</text>')
    for place, group in enumerate(groups):
        out.append(
            f'<text x="{LEFT + (place + 0.5) * wide:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{escape(group)}</text>'
        )
    write(name, title, out, list(series))


def steps(name: str, title: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    end = max(points[-1][0] for points in series.values())
    top = max(value for points in series.values() for _, value in points) or 1.0
    out = []
    for index, points in enumerate(series.values()):
        path, last = [], 0.0
        for seconds, value in points:
            x = LEFT + seconds / end * (WIDTH - LEFT - 20)
            y = HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM - 16)
            path.append(f"{'L' if path else 'M'}{x:.1f} {last or y:.1f}L{x:.1f} {y:.1f}")
            last = y
        out.append(f'<path d="{"".join(path)}" fill="none" stroke="{COLOURS[index]}" stroke-width="1.8"/>')
    for part in range(5):
        x, value = LEFT + part / 4 * (WIDTH - LEFT - 20), top * part / 4
        y = HEIGHT - BOTTOM - part / 4 * (HEIGHT - TOP - BOTTOM - 16)
        out.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{end * part / 4 / 60:.0f} min</text>'
        )
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    write(name, title, out, list(series))


def saturation(name: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """What is given out, in per cent, against what was asked for."""
    low, high = 80.0, 100.0
    first, last = (points[place][0] for points in [next(iter(series.values()))] for place in (0, -1))
    out = []
    for index, points in enumerate(series.values()):
        path = "L".join(
            f"{LEFT + (asked - first) / (last - first) * (WIDTH - LEFT - 20):.1f} {HEIGHT - BOTTOM - (given - low) / (high - low) * (HEIGHT - TOP - BOTTOM - 16):.1f}"
            for asked, given in points
            if given >= low
        )
        out.append(f'<path d="M{path}" fill="none" stroke="{COLOURS[index]}" stroke-width="1.8"/>')
    for part in range(5):
        x, y = LEFT + part / 4 * (WIDTH - LEFT - 20), HEIGHT - BOTTOM - part / 4 * (HEIGHT - TOP - BOTTOM - 16)
        out.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{first + (last - first) * part / 4:.1%}</text>'
        )
        out.append(
            f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{low + (high - low) * part / 4:.0f} %</text>'
        )
    write(name, "GPUs given out, against what was asked for", out, list(series))


def write(name: str, title: str, parts: Sequence[str], legend: Sequence[str]) -> None:
    keys = "".join(
        f'<rect x="{LEFT + 150 * index}" y="{HEIGHT - 14}" width="10" height="10" fill="{COLOURS[index]}"/>'
        f'<text x="{LEFT + 150 * index + 15}" y="{HEIGHT - 5}">{escape(text)}</text>'
        for index, text in enumerate(legend)
    )
    axis = f'<line x1="{LEFT}" x2="{WIDTH - 20}" y1="{HEIGHT - BOTTOM}" y2="{HEIGHT - BOTTOM}" stroke="#99a"/>'
    (PLOTS / f"{name}.svg").write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11" fill="#445">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/><text x="{LEFT}" y="14" font-size="13">{escape(title)}</text>'
        f"{axis}{''.join(parts)}{keys}</svg>\n",
        encoding="utf-8",
    )
