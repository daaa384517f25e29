"""The command line as Volcano's users know it: flags, help screens and errors in the manner of Go's cobra and pflag.

Commands are values; what they do is imported only when they are called.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TextIO

from volcano.api.nearest_words import did_you_mean

EVERYDAY, CLOSER, ADMINISTRATION = "Everyday", "Looking closer", "Administration"
ONE_NAME: Final = "[NAME]"
"""The arguments of a command that takes a name, as its flag --name does."""
SECTIONS: Final = (EVERYDAY, CLOSER, ADMINISTRATION)
STRING, INT, INT32, BOOL, DURATION = "string", "int", "int32", "", "duration"
VERBS: Final = {
    "logs": "show the logs of", "history": "show the history of", "eta": "expect the start of",
    "shell": "open a shell in", "attach": "attach to", "tree": "show the tree of", "status": "show the status of",
    "top": "show the top of the cluster", "usage": "report usage", "completion": "print the completion script",
    "version": "print the version",
}  # fmt: skip
"""How a message says that a command failed whose name is no verb before an object: `Failed to show the logs of job`."""
_RANGES: Final = {INT: 2**63, INT32: 2**31}


class UsageError(Exception):
    """A flag or word that does not exist, or a value that does not fit; the message is pflag's."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag."""

    name: str
    short: str = ""
    default: Any = ""
    help: str = ""
    kind: str = STRING
    is_repeatable: bool = False
    choices: tuple[str, ...] = ()
    """The values that completion offers."""

    @property
    def left(self) -> str:
        short = f"  -{self.short}, " if self.short else "      "
        return f"{short}--{self.name}{f' {self.kind}' if self.kind else ''}"

    @property
    def right(self) -> str:
        if self.kind == BOOL or self.default in ("", 0, (), None):
            return self.help
        shown = f'"{self.default}"' if self.kind == STRING else self.default
        return f"{self.help} (default {shown})"

    def parse(self, text: str) -> Any:
        if self.kind == BOOL:
            return self._parse_bool(text)
        if self.kind in _RANGES:
            return self._parse_int(text)
        if self.kind == DURATION and not re.fullmatch(r"[-+]?(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+|0", text):
            raise self._refuse(text, f'time: invalid duration "{text}"')
        return text

    def _parse_bool(self, text: str) -> bool:
        if text in ("1", "t", "T", "true", "TRUE", "True"):
            return True
        if text in ("0", "f", "F", "false", "FALSE", "False"):
            return False
        raise self._refuse(text, f'strconv.ParseBool: parsing "{text}": invalid syntax')

    def _parse_int(self, text: str) -> int:
        try:
            number = int(text, 0)
        except ValueError:
            raise self._refuse(text, f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
        if not -_RANGES[self.kind] <= number < _RANGES[self.kind]:
            raise self._refuse(text, f'strconv.ParseInt: parsing "{text}": value out of range')
        return number

    def _refuse(self, text: str, why: str) -> UsageError:
        shown = f"-{self.short}, --{self.name}" if self.short else f"--{self.name}"
        return UsageError(f'invalid argument "{text}" for "{shown}" flag: {why}')


GLOBAL_FLAGS: Final = (
    Flag("log-flush-frequency", default="5s", kind=DURATION, help="Maximum number of seconds between log flushes"),
    Flag("v", "v", default="", kind="Level", help="number for the log level verbosity"),
    Flag(
        "vmodule",
        default="",
        kind="moduleSpec",
        help="comma-separated list of pattern=N settings for file-filtered logging "
        "(only works for the default text log format)",
    ),
)


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """A command or a group. `run` is "module:function"; it is given the flags' values by name."""

    name: str
    short: str = ""
    flags: tuple[Flag, ...] = ()
    run: str = ""
    children: tuple[CommandSpec, ...] = ()
    arguments: str = ""
    """What may follow the flags, as the usage line shows it; nothing may where it is empty."""
    section: str = EVERYDAY
    """The heading below which the help of the group lists the command."""
    examples: tuple[str, ...] = ()
    script_flags: tuple[Flag, ...] = ()
    """Flags that count when a script is submitted, which its own reader understands; help and manual list them."""
    hidden: bool = False
    """Works, but is for programs: completion asks for candidates with one."""

    def child(self, name: str) -> CommandSpec | None:
        return next((each for each in self.children if each.name == name), None)


@dataclass(frozen=True, slots=True)
class Called:
    """A command line, understood."""

    path: tuple[CommandSpec, ...]
    values: Mapping[str, Any] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    wants_help: bool = False
    given: frozenset[str] = frozenset()
    """The flags that are on the command line."""

    @property
    def command(self) -> CommandSpec:
        return self.path[-1]


def main(root: CommandSpec, argv: Sequence[str] | None = None) -> int:
    """Run a command line; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        called = understand(root, words)
    except UsageError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if called.wants_help or not called.command.run:
        print(help_screen(called.path), end="")
        return 0
    return _call(called)


def _call(called: Called) -> int:
    module, _, name = called.command.run.partition(":")
    function: Callable[..., Any] = getattr(importlib.import_module(module), name)
    from volcano.cli.failures import Failed

    try:
        code = function(called)
    except Failed as error:
        words = " ".join(VERBS.get(command.name, command.name) for command in reversed(called.path[1:]))
        print(f"Failed to{f' {words}' if words else ''}: {error}", file=sys.stderr)
        return 255
    except BrokenPipeError:
        return 141
    except KeyboardInterrupt:
        return 130
    return int(code or 0)


def understand(root: CommandSpec, words: list[str]) -> Called:
    """Find the command, then its flags; raises UsageError."""
    path, rest = _find(root, words)
    flags = {flag.name: flag for command in path for flag in command.flags} | {f.name: f for f in GLOBAL_FLAGS}
    values: dict[str, Any] = {name: flag.default for name, flag in flags.items()}
    if path[-1].children and rest and not rest[0].startswith("-") and not {"-h", "--help"} & {*rest}:
        _check_arguments(path, rest)  # a misspelt command, whose flags are not the group's
    try:
        given, arguments, wants_help = _parse_flags(flags, rest)
    except UsageError as error:
        usage = " ".join(each.name for each in path)
        raise UsageError(f"{error}\nRun '{usage} --help' for usage.") from None
    if arguments and not wants_help:
        _check_arguments(path, arguments)
        if path[-1].arguments == ONE_NAME:
            given |= _name_given_as_argument(given, arguments.pop())
    return Called(tuple(path), values | given, tuple(arguments), wants_help, frozenset(given))


def _name_given_as_argument(given: Mapping[str, Any], name: str) -> dict[str, Any]:
    if given.get("name", name) != name:
        raise UsageError(f"two names are given: {given['name']} and {name}")
    return {"name": name}


def _check_arguments(path: list[CommandSpec], arguments: list[str]) -> None:
    """A group takes the name of a command, and a command what it says that it takes."""
    command, words = path[-1], " ".join(each.name for each in path)
    if command.children:
        known = [each.name for each in command.children if not each.hidden]
        likely = did_you_mean(arguments[0], known)
        raise UsageError(f'unknown command "{arguments[0]}" for "{words}"{likely}\nRun \'{words} --help\' for usage.')
    if not command.arguments:
        raise UsageError(f'"{words}" takes no argument, but "{arguments[0]}" was given')
    if len(arguments) > 1 and "…" not in command.arguments:
        raise UsageError(f'"{words}" takes one argument, but "{arguments[1]}" follows')


def _find(root: CommandSpec, words: list[str]) -> tuple[list[CommandSpec], list[str]]:
    path, rest, index = [root], list(words), 0
    if rest and rest[0] == "help" and root.children:
        rest = [*rest[1:], "--help"]
    while index < len(rest) and path[-1].children:
        word = rest[index]
        if word.startswith("-"):
            index += 1 if "=" in word or word in ("-h", "--help") else 2
            continue
        child = path[-1].child(word)
        if child is None:
            break
        path.append(child)
        del rest[index]
    return path, rest


def _parse_flags(flags: Mapping[str, Flag], words: list[str]) -> tuple[dict[str, Any], list[str], bool]:
    by_short = {flag.short: flag for flag in flags.values() if flag.short}
    values: dict[str, Any] = {}
    arguments: list[str] = []
    wants_help, waiting = False, list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word == "--":
            arguments += reversed(waiting)
            break
        if word in ("--help", "-h"):
            wants_help = True
        elif word.startswith("--"):
            _long(flags, word, waiting, values)
        elif word.startswith("-") and len(word) > 1:
            wants_help = _shorts(by_short, word, waiting, values) or wants_help
        else:
            arguments.append(word)
    return values, arguments, wants_help


def _long(flags: Mapping[str, Flag], word: str, waiting: list[str], values: dict[str, Any]) -> None:
    name, equals, text = word[2:].partition("=")
    flag = flags.get(name.replace("_", "-"))
    if flag is None:
        raise UsageError(f"unknown flag: --{name}{did_you_mean(name, flags)}")
    if not equals:
        if flag.kind == BOOL:
            text = "true"
        elif waiting:
            text = waiting.pop()
        else:
            raise UsageError(f"flag needs an argument: --{name}")
    _set(values, flag, text)


def _shorts(by_short: Mapping[str, Flag], word: str, waiting: list[str], values: dict[str, Any]) -> bool:
    """`-k x`, `-kx`, `-k=x`, and booleans in a row. Whether -h was among them."""
    letters = word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        if letter == "h" and "h" not in by_short:
            return True
        flag = by_short.get(letter)
        if flag is None:
            raise UsageError(f"unknown shorthand flag: {letter!r} in {word}")
        if flag.kind == BOOL and not letters.startswith("="):
            _set(values, flag, "true")
            continue
        if letters:
            text = letters.removeprefix("=")
        elif waiting:
            text = waiting.pop()
        else:
            raise UsageError(f"flag needs an argument: {letter!r} in {word}")
        _set(values, flag, text)
        return False
    return False


def _set(values: dict[str, Any], flag: Flag, text: str) -> None:
    value = flag.parse(text)
    values[flag.name] = (*values.get(flag.name, ()), value) if flag.is_repeatable else value


# -- help -------------------------------------------------------------------------------------------------------
def help_screen(path: Sequence[CommandSpec]) -> str:
    """Everything a command takes, with examples; a group lists all its commands by how often they are needed."""
    command, words = path[-1], " ".join(each.name for each in path)
    lines = [command.short, ""] if command.short else []
    taken = f" {command.arguments}" if command.arguments else ""
    lines += ["Usage:", f"  {words} [command]" if command.children else f"  {words}{taken} [flags]", ""]
    lines += _command_blocks(command)
    own = [*command.flags, Flag("help", "h", kind=BOOL, help=f"help for {command.name}")]
    if len(path) == 1:
        lines += _flag_block("Flags:", [*own, *GLOBAL_FLAGS])
    else:
        lines += [*_flag_block("Flags:", own), "", *_flag_block("Global Flags:", list(GLOBAL_FLAGS))]
    if command.script_flags:
        lines += ["", *_flag_block("Flags with a script or --wrap, as sbatch has them:", list(command.script_flags))]
    if command.examples:
        lines += ["", "Examples:", *(f"  {example}" for example in command.examples)]
    if command.children:
        lines += ["", f'Use "{words} [command] --help" for more information about a command.']
    return "\n".join(lines) + "\n"


def _command_blocks(command: CommandSpec) -> list[str]:
    shown = [each for each in command.children if not each.hidden]
    width = max((len(each.name) for each in shown), default=0) + 3
    lines = []
    for section in SECTIONS:
        members = [each for each in shown if each.section == section]
        if members:
            lines += [f"{section}:", *(_command_line(each, width) for each in members), ""]
    return lines


def _command_line(command: CommandSpec, width: int) -> str:
    """A group is listed with its commands, so that one screen shows what there is."""
    below = ", ".join(each.name for each in command.children)
    return f"  {command.name:<{width}}{command.short}{f': {below}' if below else ''}"


def _flag_block(title: str, flags: list[Flag]) -> list[str]:
    width = max(len(flag.left) for flag in flags) + 3
    return [title, *(f"{f.left:<{width}}{f.right}".rstrip() for f in sorted(flags, key=lambda f: f.name))]


def say(text: str = "", *, end: str = "\n", out: TextIO | None = None) -> None:
    print(text, end=end, file=out or sys.stdout)
