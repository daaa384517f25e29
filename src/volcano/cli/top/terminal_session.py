"""The terminal while `vcctl top` owns it: other screen, no echo, resizes; however the program ends, it is as before."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Final

from volcano.cli.top.keys import KeyReader

ENTER: Final = "\033[?1049h\033[?25l\033[2J"
LEAVE: Final = "\033[0m\033[?25h\033[?1049l"
ESCAPE_SECONDS: Final = 0.1
"""How long the rest of an escape sequence may take, also over a slow line; then it was the key Esc."""
READ_BYTES: Final = 1024
ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)


class TerminalSession:
    """A context: inside it, keys come one by one and lines are drawn at their places."""

    def __init__(self) -> None:
        self._input, self._keys = sys.stdin.fileno(), KeyReader()
        self._shown: list[str] = []
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._handlers: dict[int, object] = {}
        self._before: list[object] = []

    def __enter__(self) -> TerminalSession:
        import termios

        self._before = termios.tcgetattr(self._input)
        for number in (*ENDING_SIGNALS, signal.SIGWINCH, signal.SIGTSTP):
            self._handlers[number] = signal.getsignal(number)
        for number in ENDING_SIGNALS:
            signal.signal(number, _end)
        signal.signal(signal.SIGWINCH, self._resized)
        signal.signal(signal.SIGTSTP, self._stopped)
        self._take()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._give_back()

    def size(self) -> tuple[int, int]:
        """As the terminal says it: COLUMNS and LINES, which programs pass on, are those of the time before a resize."""
        try:
            found = os.get_terminal_size(sys.stdout.fileno())
        except OSError:
            found = shutil.get_terminal_size()
        return (found.columns, found.lines) if found.columns and found.lines else (80, 24)

    def wake(self) -> None:
        """Make `wait` return, from another thread or a signal handler."""
        with contextlib.suppress(OSError):  # a full pipe wakes it as well
            os.write(self._wake, b".")

    def wait(self) -> list[str]:
        """The keys that were typed; none when something else happened."""
        timeout = ESCAPE_SECONDS if self._keys.is_waiting else None
        readable, _, _ = select.select([self._input, self._woken], [], [], timeout)
        if self._woken in readable:
            os.read(self._woken, READ_BYTES)
        if self._input in readable:
            typed = os.read(self._input, READ_BYTES)
            if not typed:
                raise EOFError("the terminal is gone")
            return self._keys.feed(typed)
        return self._keys.give_up() if not readable else []

    def draw(self, lines: list[str]) -> None:
        """Only the lines that differ from what is shown, since the way to the terminal may be slow."""
        changed = "".join(_lines_at(self._shown, lines))
        self._shown = list(lines)
        if changed:
            sys.stdout.write(changed)
            sys.stdout.flush()

    def _take(self) -> None:
        import termios
        import tty

        tty.setcbreak(self._input, termios.TCSADRAIN)
        sys.stdout.write(ENTER)
        sys.stdout.flush()
        self._shown = []

    def _give_back(self) -> None:
        import termios

        with contextlib.suppress(OSError, termios.error):  # a terminal that is gone needs nothing
            termios.tcsetattr(self._input, termios.TCSADRAIN, self._before)  # type: ignore[arg-type]
            sys.stdout.write(LEAVE)
            sys.stdout.flush()

    def _resized(self, _number: int, _frame: FrameType | None) -> None:
        self._shown = []
        with contextlib.suppress(OSError):
            os.write(sys.stdout.fileno(), b"\033[2J")
        self.wake()

    def _stopped(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: the shell gets its terminal as it was, and `fg` brings this screen back."""
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()
        self.wake()


def _lines_at(shown: list[str], lines: list[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number >= len(shown) or shown[number] != line:
            yield f"\033[{number + 1};1H{line}\033[K"
    if len(shown) > len(lines):
        yield "\033[J"


def _end(number: int, _frame: FrameType | None) -> None:
    raise SystemExit(128 + number)
