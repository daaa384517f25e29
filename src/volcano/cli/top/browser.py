"""What `vcctl top` is looking at, and what each key changes; neither a terminal nor a clock is needed for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from volcano.cli.top import keys
from volcano.cli.top.cluster_picture import ClusterPicture
from volcano.cli.top.sheets import JOBS, KINDS, Sheet, SheetRow, ordered, sheet

TAB_KEYS: Final = {str(number): kind for number, kind in enumerate(KINDS, start=1)}
SORT, REVERSE = "s", "r"
STEPS: Final = {keys.LEFT: -1, keys.PREVIOUS: -1, keys.RIGHT: 1, keys.NEXT: 1}


@dataclass
class Browser:
    """The open table, its order and selected row, or the object that is looked at closely."""

    kind: str = JOBS
    sort: dict[str, str] = field(default_factory=dict)
    is_reversed: dict[str, bool] = field(default_factory=dict)
    selected: dict[str, tuple[str, str]] = field(default_factory=dict)
    first_row: dict[str, int] = field(default_factory=dict)
    detail: tuple[str, str] | None = None
    """The key of the object that is looked at; its kind is that of the table."""
    detail_line: int = 0
    is_over: bool = False

    def table(self, picture: ClusterPicture) -> tuple[Sheet, list[SheetRow]]:
        """The open table and its rows in order."""
        found = sheet(self.kind, picture)
        return found, ordered(found, self.sort_column(found), is_reversed=self.is_reversed.get(self.kind, False))

    def sort_column(self, table: Sheet) -> str:
        chosen = self.sort.get(table.kind, table.first_sort)
        return chosen if any(column.title == chosen for column in table.columns) else table.first_sort

    def looked_at(self) -> tuple[str, str] | None:
        """The job whose events are wanted."""
        return self.detail if self.kind == JOBS else None

    def place(self, rows: list[SheetRow]) -> int:
        """Of the selected row; the first where the selection is gone."""
        wanted = self.selected.get(self.kind)
        return next((number for number, row in enumerate(rows) if row.key == wanted), 0)

    def pressed(self, key: str, picture: ClusterPicture, page: int) -> None:
        """A key, on a screen that shows `page` rows."""
        if key == keys.QUIT:
            self.is_over = True
        elif key in TAB_KEYS:
            self._open(TAB_KEYS[key])
        elif key in STEPS:
            self._open(KINDS[(KINDS.index(self.kind) + STEPS[key]) % len(KINDS)])
        elif self.detail is not None:
            self._in_detail(key, page)
        elif key == SORT:
            self._next_sort(picture)
        elif key == REVERSE:
            self.is_reversed[self.kind] = not self.is_reversed.get(self.kind, False)
        else:
            self._in_table(key, self.table(picture)[1], page)

    def scroll(self, rows: list[SheetRow], page: int) -> int:
        """The first row on the screen, such that the selected one is on it."""
        place, first = self.place(rows), self.first_row.get(self.kind, 0)
        first = max(min(first, place), place - max(page, 1) + 1, 0)
        self.first_row[self.kind] = first
        return first

    def _open(self, kind: str) -> None:
        self.kind, self.detail, self.detail_line = kind, None, 0

    def _next_sort(self, picture: ClusterPicture) -> None:
        table, _ = self.table(picture)
        titles = [column.title for column in table.columns]
        self.sort[self.kind] = titles[(titles.index(self.sort_column(table)) + 1) % len(titles)]
        self.is_reversed[self.kind] = False

    def _in_table(self, key: str, rows: list[SheetRow], page: int) -> None:
        if not rows:
            return
        place = self.place(rows)
        if key == keys.ENTER:
            self.detail, self.detail_line = rows[place].key, 0
            return
        moved = _moved(key, place, len(rows), page)
        if moved is not None:
            self.selected[self.kind] = rows[moved].key

    def _in_detail(self, key: str, page: int) -> None:
        if key in (keys.BACK, keys.ENTER):
            self.detail = None
            return
        moved = _moved(key, self.detail_line, 2**31, page)
        if moved is not None:
            self.detail_line = moved  # bounded by the lines there are when it is drawn


def _moved(key: str, place: int, count: int, page: int) -> int | None:
    wanted = {
        keys.UP: place - 1,
        keys.DOWN: place + 1,
        keys.PAGE_UP: place - page,
        keys.PAGE_DOWN: place + page,
        keys.HOME: 0,
        keys.END: count - 1,
    }.get(key)
    return None if wanted is None else max(0, min(wanted, count - 1))
