"""Inputs that learn: mutations of kept inputs, of which those are kept that make a parser run new lines of ours."""

from __future__ import annotations

import base64
import random
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import volcano
from tests.fuzz.targets import FuzzTarget

CORPUS: Final = Path(__file__).parent / "corpus"
MAX_INPUT_BYTES: Final = 4096
MAX_KEPT_INPUTS: Final = 120
MAX_STEPS: Final = 1_000_000
"""Lines of ours that one input may run; an input of 4 KiB that needs more takes more than linear time."""
SOURCE: Final = str(Path(volcano.__file__).parent)


class FuzzFailure(AssertionError):
    """An input broke an invariant; the message has the input."""


class LineTrace:
    """Pairs of successive lines of our sources that a call runs, and how many lines it runs."""

    def __init__(self) -> None:
        self.pairs: set[tuple[CodeType, int, int]] = set()
        self.steps = 0
        self._last = 0
        self._before: Any = None

    def __enter__(self) -> LineTrace:
        self._before = sys.gettrace()
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)  # of coverage, which would see nothing any more

    def _call(self, frame: FrameType, _event: str, _value: Any) -> Any:
        return self._line if frame.f_code.co_filename.startswith(SOURCE) else None

    def _line(self, frame: FrameType, event: str, _value: Any) -> Any:
        if event == "line":
            self.steps += 1
            self.pairs.add((frame.f_code, self._last, frame.f_lineno))
            self._last = frame.f_lineno
            if self.steps > MAX_STEPS:
                raise FuzzFailure(f"more than {MAX_STEPS} lines")
        return self._line


def run_once(target: FuzzTarget, content: bytes) -> None:
    """Only the parser's own errors are allowed."""
    try:
        target.run(content)
    except target.errors:
        return
    except Exception as error:
        raise FuzzFailure(f"{type(error).__name__}: {error}: input {content!r}") from error


def mutated(chance: random.Random, inputs: list[bytes], words: tuple[bytes, ...]) -> bytes:
    """One of the inputs after some small changes."""
    content = bytearray(chance.choice(inputs))
    for _ in range(chance.choice((1, 1, 1, 2, 3, 8))):
        at = chance.randint(0, len(content))
        to = min(len(content), at + chance.choice((1, 1, 2, 4, 16)))
        match chance.randrange(7):
            case 0 if content:
                content[at % len(content)] ^= 1 << chance.randrange(8)
            case 1:
                del content[at:to]
            case 2 | 3:
                content[at:at] = chance.choice(words)
            case 4:
                content[at:at] = content[at:to] * chance.choice((1, 2, 40))
            case 5:
                other = chance.choice(inputs)
                start = chance.randint(0, len(other))
                content[at:to] = other[start : start + chance.choice((1, 4, 32))]
            case _:
                content[at:at] = bytes([chance.randrange(256)])
    return bytes(content[:MAX_INPUT_BYTES])


class Learner:
    """One target with the inputs that it has learned."""

    def __init__(self, name: str, target: FuzzTarget, chance: random.Random) -> None:
        self.name, self.target, self._chance = name, target, chance
        self.inputs: list[bytes] = []
        self.tried = 0
        self._known: set[tuple[CodeType, int, int]] = set()
        for content in dict.fromkeys((*target.seeds, *kept_inputs(name))):
            self._try(content)
        self.inputs = self.inputs or list(target.seeds)
        self.learned_before = len(self.inputs)

    def step(self) -> None:
        self._try(mutated(self._chance, self.inputs, self.target.words))

    def _try(self, content: bytes) -> None:
        self.tried += 1
        with LineTrace() as trace:
            run_once(self.target, content)
        if not trace.pairs <= self._known:
            self._known |= trace.pairs
            if len(self.inputs) < MAX_KEPT_INPUTS:
                self.inputs.append(content)

    @property
    def reached(self) -> int:
        return len(self._known)

    def save(self) -> None:
        """The inputs in the form in which they are kept with the sources."""
        lines = [base64.b64encode(content).decode() for content in self.inputs if content not in self.target.seeds]
        if lines:
            _file(self.name).write_text("\n".join(lines) + "\n")


def kept_inputs(name: str) -> list[bytes]:
    path = _file(name)
    return [base64.b64decode(line) for line in path.read_text().split()] if path.exists() else []


def _file(name: str) -> Path:
    return CORPUS / f"{name}.base64"
