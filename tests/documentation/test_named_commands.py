"""Commands, flags, targets and files that a page names in a sentence or a table exist."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from markdown_it import MarkdownIt

from tests.documentation.blocks import ROOT, all_pages, fences, name_of
from tests.documentation.test_blocks import of
from volcano.app.main import volcano_command
from volcano.cli.command_line import GLOBAL_FLAGS, CommandSpec
from volcano.cli.programs import programs

PROGRAMS = {program.name: program for program in programs()}
SLURM = {"vsub", "vrun", "vjobs", "vinfo", "vcancel"}
"""They read sbatch's and squeue's options, which tests/system/test_coming_from_slurm.py types."""
OPEN = re.compile(r"[A-Z…<\[{(]|\.\.\.|NAME")
"""A word that stands for others: what follows it cannot be followed either."""
FILE = re.compile(r"(?:src|tests|docs|examples|tools|benchmarks|deploy)/[\w./-]*\w")
TARGETS = set(" ".join(re.findall(r"^([\w -]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)).split())
DECISIONS = ROOT / "docs" / "decisions"
LEFT_OUT = ("CHANGELOG.md", "misspellings.md")
"""Decisions and changes are not rewritten: they name what there was. The other page is about what there is not."""
PAGES = [page for page in all_pages() if page.parent != DECISIONS and page.name not in LEFT_OUT]


def spans(page: Path) -> Iterator[str]:
    """Code within sentences and cells, and the lines of blocks that are not run."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text()):
        yield from (child.content for child in token.children or () if child.type == "code_inline")
    for fence in fences(page):
        if fence.role == "elsewhere":
            yield from (line.partition(" #")[0] for line in fence.text.replace("\\\n", " ").splitlines())


def words_of(span: str) -> list[str]:
    try:
        return shlex.split(span, comments=True)
    except ValueError:
        return []


def commands(span: str) -> Iterator[list[str]]:
    """The words of each command of a line, without the words that stand for others."""
    for part in re.split(r"\s*(?:\|\s|&&|;|\|\|)\s*", span):
        words = words_of(part.removesuffix("&"))
        if words and (words[0] in PROGRAMS or words[0] in ("volcano", "make")):
            yield words


def problem(words: list[str]) -> str:
    match words[0]:
        case "make":
            return next((f"no target {word}" for word in words[1:] if "=" not in word and word not in TARGETS), "")
        case "volcano":
            return problem_of_volcano(words[1:])
        case program if program in SLURM:
            return ""
        case program:
            return problem_of_program(PROGRAMS[program], words[1:])


def problem_of_volcano(words: list[str]) -> str:
    command: click.Command = volcano_command
    context = click.Context(command)
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        if OPEN.match(words[0]):
            return ""
        child = command.get_command(context, words[0])
        if child is None:
            return f"no command {words[0]}"
        command, words = child, words[1:]
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)} | {
        "--help",
        "--version",
    }
    return unknown_flag(words, known)


def problem_of_program(command: CommandSpec, words: list[str]) -> str:
    while words and command.children and not words[0].startswith("-"):
        if OPEN.match(words[0]):
            return ""
        child = command.child(words[0])
        if child is None:
            return f"no command {words[0]}"
        command, words = child, words[1:]
    if command.children:
        return ""
    flags = (*command.flags, *GLOBAL_FLAGS)
    return unknown_flag(words, {f"--{flag.name}" for flag in flags} | {f"-{flag.short}" for flag in flags} | {"--help"})


def unknown_flag(words: list[str], known: set[str]) -> str:
    if "--" in words:
        words = words[: words.index("--")]
    stated = [word.partition("=")[0] for word in words if re.match(r"--?[a-zA-Z]", word)]
    return next((f"no flag {flag}" for flag in stated if flag not in known and not flag.endswith("-")), "")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_and_flags_exist(page):
    wrong = [
        f"{' '.join(words)}: {found}" for span in spans(page) for words in commands(span) if (found := problem(words))
    ]

    assert wrong == []


@pytest.mark.parametrize("fence", of("json", "server"), ids=lambda fence: fence.place)
def test_servers_that_clients_start_are_commands(fence):
    servers = json.loads(fence.text)["mcpServers"].values()

    assert [problem([server["command"], *server["args"]]) for server in servers] == [""]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_exist(page):
    named = [span.partition(" ")[0] for span in spans(page) if FILE.fullmatch(span)]

    assert [name for name in named if not (ROOT / name).exists()] == []


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("volcano upp", "no command upp"),
        ("volcano up --node 3", "no flag --node"),
        ("vcctl job list --start | head", ""),
        ("vcctl job lst", "no command lst"),
        ("vcctl queue create NAME --wieght=2", "no flag --wieght"),
        ("vcctl job exec gang -- ls --colour", ""),
        ("make tests", "no target tests"),
    ],
)
def test_what_does_not_exist_is_found(line, answer):
    assert [found for words in commands(line) if (found := problem(words))] == ([answer] if answer else [])
