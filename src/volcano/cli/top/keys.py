"""Keys from the bytes that a terminal sends for them, across reads that end inside a sequence."""

from __future__ import annotations

from typing import Final

UP, DOWN, LEFT, RIGHT = "up", "down", "left", "right"
PAGE_UP, PAGE_DOWN, HOME, END = "page up", "page down", "home", "end"
ENTER, BACK, NEXT, PREVIOUS, QUIT = "enter", "back", "next", "previous", "quit"
ESCAPE: Final = b"\x1b"
SEQUENCES: Final = {
    b"\x1b[A": UP, b"\x1b[B": DOWN, b"\x1b[C": RIGHT, b"\x1b[D": LEFT,
    b"\x1bOA": UP, b"\x1bOB": DOWN, b"\x1bOC": RIGHT, b"\x1bOD": LEFT,
    b"\x1b[5~": PAGE_UP, b"\x1b[6~": PAGE_DOWN, b"\x1b[H": HOME, b"\x1b[F": END, b"\x1bOH": HOME, b"\x1bOF": END,
    b"\x1b[1~": HOME, b"\x1b[4~": END, b"\x1b[Z": PREVIOUS,
}  # fmt: skip
SINGLE: Final = {
    b"\r": ENTER, b"\n": ENTER, b"\t": NEXT, b"\x7f": BACK, b"\x08": BACK, ESCAPE: BACK,
    b"\x03": QUIT, b"\x04": QUIT, b"q": QUIT,
    b"k": UP, b"j": DOWN, b"h": LEFT, b"l": RIGHT, b"g": HOME, b"G": END, b" ": PAGE_DOWN,
}  # fmt: skip
MAX_SEQUENCE_BYTES: Final = 16
"""An escape sequence that is longer is not of a key."""


class KeyReader:
    """Splits what was typed into keys; letters that mean nothing else are given as themselves."""

    def __init__(self) -> None:
        self._pending = b""

    def feed(self, typed: bytes) -> list[str]:
        """The keys that are complete now."""
        data, keys = self._pending + typed, []
        self._pending = b""
        while data:
            length = _length(data)
            if length == 0:
                self._pending = data
                break
            key, data = data[:length], data[length:]
            name = SEQUENCES.get(key) or SINGLE.get(key) or key.decode("ascii", errors="ignore")
            if name and name.isprintable():
                keys.append(name)
        return keys

    @property
    def is_waiting(self) -> bool:
        """Whether an escape sequence has begun; when nothing follows it soon, it was the key Esc."""
        return bool(self._pending)

    def give_up(self) -> list[str]:
        """Nothing more came: a lone ESC is the key Esc, the rest of a sequence is dropped."""
        was_escape, self._pending = self._pending == ESCAPE, b""
        return [BACK] if was_escape else []


def _length(data: bytes) -> int:
    """Of the first key, 0 while it is incomplete."""
    if not data.startswith(ESCAPE):
        return 1
    if len(data) == 1:
        return 0
    if data[1:2] == b"O":
        return 3 if len(data) > 2 else 0
    if data[1:2] != b"[":
        return 1
    for place, byte in enumerate(data[2:MAX_SEQUENCE_BYTES], start=3):
        if 0x40 <= byte <= 0x7E:
            return place
    return min(len(data), MAX_SEQUENCE_BYTES) if len(data) >= MAX_SEQUENCE_BYTES else 0
