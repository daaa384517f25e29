"""A program at a pseudo-terminal, and the screen that it draws, read as a terminal emulator would."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

DEADLINE = 60.0
SEQUENCE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z])|\x1b[()][A-Z0-9]|\x1b[=>]")
PROGRAM = "import sys; from volcano.cli.programs import run_program; sys.exit(run_program(sys.argv[1], sys.argv[2:]))"


class Screen:
    """What a terminal shows; unknown sequences fail, so that nothing is misread."""

    def __init__(self, width, height):
        self.is_other, self.has_cursor, self.reversed_lines = False, True, set()
        self._pending, self._decoder = "", codecs.getincrementaldecoder("utf-8")("replace")
        self.resize(width, height)
        self.scrolled = ""
        """What was written on the ordinary screen."""

    def resize(self, width, height):
        self.width, self.height, self.row, self.column, self.is_reversed = width, height, 0, 0, False
        self.cells = [[" "] * width for _ in range(height)]

    def lines(self):
        return ["".join(row).rstrip() for row in self.cells]

    def text(self):
        return "\n".join(self.lines())

    def feed(self, data):
        text = self._pending + self._decoder.decode(data)
        self._pending = ""
        while text:
            if text[0] != "\x1b":
                self._put(text[0])
                text = text[1:]
                continue
            match = SEQUENCE.match(text)
            if match is None:
                self._pending = text
                return
            text = text[match.end() :]
            if match[2]:
                self._control(match[1], match[2])

    def _put(self, character):
        if not self.is_other:
            self.scrolled += character
        if character == "\r":
            self.column = 0
        elif character == "\n":
            self.row = min(self.row + 1, self.height - 1)
        elif self.column < self.width:
            self.cells[self.row][self.column] = character
            self.column += 1
            if self.is_reversed:
                self.reversed_lines.add(self.row)

    def _control(self, given, letter):
        numbers = [int(each or 0) for each in given.lstrip("?").split(";")]
        if letter == "H":
            self.row, self.column = min(max(numbers[0], 1), self.height) - 1, max(numbers[-1], 1) - 1
            self.reversed_lines.discard(self.row)
        elif letter == "K":
            self.cells[self.row][self.column :] = [" "] * (self.width - self.column)
        elif letter == "J":
            first = 0 if numbers[0] == 2 else self.row
            self.cells[first:] = [[" "] * self.width for _ in range(self.height - first)]
        elif letter == "m":
            self.is_reversed = 7 in numbers if numbers != [0] else False
        elif given in ("?1049", "?25"):
            name = "is_other" if given == "?1049" else "has_cursor"
            setattr(self, name, letter == "h")
        else:
            raise AssertionError(f"unexpected sequence {given}{letter}")


class AtTerminal:
    """A program at a pseudo-terminal of this size."""

    def __init__(self, words, variables, *, width=100, height=24, program=PROGRAM):
        self.screen = Screen(width, height)
        self.process, self._terminal = pty.fork()
        if self.process == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
            os.execve(sys.executable, [sys.executable, "-c", program, *words], variables)
        self._before = termios.tcgetattr(self._terminal)

    def type(self, text):
        os.write(self._terminal, text.encode())

    def resize(self, width, height):
        self.screen.resize(width, height)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))

    def until(self, holds, what="the screen shows it"):
        """The screen, once this holds for it."""
        end = time.monotonic() + DEADLINE
        while not holds(self.screen):
            assert time.monotonic() < end, f"never: {what}\n{self.screen.text()}\n{self.screen.scrolled}"
            if not self._read():
                raise AssertionError(f"it ended before: {what}\n{self.screen.text()}\n{self.screen.scrolled}")
        return self.screen

    def shows(self, text):
        return self.until(lambda screen: text in screen.text(), text)

    def signal(self, number):
        os.kill(self.process, number)

    def until_stopped(self):
        end = time.monotonic() + DEADLINE
        while time.monotonic() < end:
            self._read()
            if os.waitpid(self.process, os.WNOHANG | os.WUNTRACED)[0]:
                return
        raise AssertionError("it did not stop")

    def end(self):
        """The exit code, once it has ended by itself; the terminal is as it was found."""
        end = time.monotonic() + DEADLINE
        while self._read():
            assert time.monotonic() < end, f"it does not end\n{self.screen.text()}"
        code = os.waitstatus_to_exitcode(os.waitpid(self.process, 0)[1])
        os.close(self._terminal)
        return code

    def is_as_before(self):
        """Echo and line editing are on again, the ordinary screen is shown, with its cursor."""
        flags = termios.tcgetattr(self._terminal)[3]
        echoes = bool(flags & termios.ECHO and flags & termios.ICANON)
        return echoes and not self.screen.is_other and self.screen.has_cursor

    def _read(self):
        if not select.select([self._terminal], [], [], 0.1)[0]:
            return True
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # Linux reports the end of a terminal as an error
            return False
        self.screen.feed(data)
        return bool(data)


CTRL_C, CTRL_Z, ESCAPE, UP, DOWN, RIGHT, ENTER = "\x03", "\x1a", "\x1b", "\x1b[A", "\x1b[B", "\x1b[C", "\r"
CONTINUE, TERMINATE, HANG_UP = signal.SIGCONT, signal.SIGTERM, signal.SIGHUP
