"""Tables as lines of a terminal: coloured spans, bars, and cutting to the width in character cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.cells import cell_len, set_cell_size

from volcano.cli.top.sheets import Cell, Column, SheetRow

BAR_CELLS: Final = (12, 8, 5, 0)
"""How long bars may be; the longest that fits is taken."""
GAP: Final = 2
DIM, BOLD, REVERSED = "2", "1", "7"


class Span(NamedTuple):
    """Text in one colour."""

    text: str
    colour: str = ""


class Style(NamedTuple):
    """What the terminal can show."""

    has_colours: bool = True
    has_blocks: bool = True
    """Whether it shows more characters than ASCII."""


Line = list[Span]


def plain(text: str) -> str:
    """Without characters that would move the cursor: texts come from the cluster."""
    return "".join(each if each.isprintable() else " " for each in text)


def bar(share: float, cells: int, colour: str, style: Style) -> Line:
    full, rest = ("█", "░") if style.has_blocks else ("#", ".")
    filled = min(cells, max(round(cells * share), 1 if share > 0 else 0))
    return [Span(full * filled, colour), Span(rest * (cells - filled), DIM)]


def table_lines(
    columns: Sequence[Column], rows: Sequence[SheetRow], width: int, style: Style, sort: str = ""
) -> list[Line]:
    """The heading and the rows; bars are as long as the width allows, and the last column is cut."""
    titles = [_title(column, sort) for column in columns]
    texts = [[plain(cell.text) for cell in row.cells] for row in rows]
    widths = [
        max((cell_len(text) for text in (title, *(row[place] for row in texts))), default=0)
        for place, title in enumerate(titles)
    ]
    barred = [place for place in range(len(columns)) if any(row.cells[place].share is not None for row in rows)]
    wanted = sum(widths[:-1]) + GAP * (len(widths) - 1) + min(widths[-1] if widths else 0, 20)
    length = next((each for each in BAR_CELLS if wanted + len(barred) * (each + 1) <= width), 0)
    over_bars = [size + (length + 1 if place in barred and length else 0) for place, size in enumerate(widths)]
    lines = [_line([(Cell(title, 0, BOLD), title) for title in titles], over_bars, (), length, style)]
    lines += [_line(list(zip(row.cells, text)), widths, barred, length, style) for row, text in zip(rows, texts)]
    return lines


def _title(column: Column, sort: str) -> str:
    return f"{column.title}*" if column.title == sort else column.title


def _line(
    cells: Sequence[tuple[Cell, str]], widths: Sequence[int], barred: Sequence[int], length: int, style: Style
) -> Line:
    line: Line = []
    for place, (cell, text) in enumerate(cells):
        if place in barred and length:
            line += bar(cell.share, length, cell.colour, style) if cell.share is not None else [Span(" " * length)]
            line.append(Span(" "))
        is_last = place == len(cells) - 1
        line.append(Span(text if is_last else set_cell_size(text, widths[place] + GAP), cell.colour))
    return line


def cut(line: Line, width: int) -> Line:
    """No wider than the terminal; an ellipsis says that something is missing."""
    if sum(cell_len(span.text) for span in line) <= width:
        return line
    kept: Line = []
    room = width - 1
    for span in line:
        size = cell_len(span.text)
        if size > room:
            kept.append(Span(set_cell_size(span.text, room) + "…", span.colour))
            break
        kept.append(span)
        room -= size
    return kept


def text_of(line: Line, style: Style = Style(), *, is_selected: bool = False, width: int = 0) -> str:
    """What is written to the terminal for it."""
    if not style.has_blocks:
        line = [Span(span.text.replace("…", "~"), span.colour) for span in line]
    if not style.has_colours:
        if not is_selected:
            return "".join(span.text for span in line).rstrip()
        return f"\033[{REVERSED}m{_padded(line, width)}\033[0m"
    if is_selected:
        return f"\033[{REVERSED}m{_padded(line, width)}\033[0m"
    return "".join(f"\033[{span.colour}m{span.text}\033[0m" if span.colour else span.text for span in line)


def _padded(line: Line, width: int) -> str:
    return set_cell_size("".join(span.text for span in line), width)
