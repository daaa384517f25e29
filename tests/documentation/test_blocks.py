"""Every block of every page says what becomes of it, and what is not run with its page is counted."""

from __future__ import annotations

import subprocess
from collections import Counter

import pytest

from tests.documentation.blocks import ROOT, Fence, PageError, all_pages, fences, missing_line, name_of, read_page
from tests.system.cli.help_examples import all_examples
from tests.system.test_help_examples import examples

ALL = [fence for page in all_pages() for fence in fences(page)]
NOT_RUN = {
    "CONTRIBUTING.md": 1,
    "README.md": 2,
    "docs/assistants.md": 1,
    "docs/faults.md": 1,
    "docs/frameworks/README.md": 1,
    "docs/howto/second-machine.md": 2,
    "docs/kubernetes.md": 6,
    "docs/tutorial/1-first-job.md": 1,
}
"""Blocks whose commands are not run with their page, each with its reason after `elsewhere`. This must not grow."""


def of(language: str, role: str) -> list[Fence]:
    return [fence for fence in ALL if (fence.language, fence.role) == (language, role)]


def test_every_block_is_classified():
    """See blocks.py for the words. A block without them would be shown to readers and never tried."""
    assert [f"{fence.place}: {fence.info or 'no info string'}" for fence in ALL if not fence.is_classified] == []


def test_what_is_not_run_is_listed_and_does_not_grow():
    found = Counter(name_of(fence.page) for fence in of("sh", "elsewhere"))

    assert found == NOT_RUN, [f"{fence.place}: {fence.more}" for fence in of("sh", "elsewhere")]


@pytest.mark.parametrize("fence", of("sh", "elsewhere"), ids=lambda fence: fence.place)
def test_what_is_not_run_is_at_least_a_script(fence):
    done = subprocess.run(["bash", "-n", "-c", fence.text], capture_output=True, text=True, timeout=20, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_examples_of_help_are_those_that_are_tried():
    tried = {*all_examples(), *examples()}
    shown = [line.split("   ")[0].strip() for fence in of("sh", "help") for line in fence.text.splitlines()]

    assert [line for line in shown if line and line not in tried] == []


def test_downloads_are_only_on_pages_of_frameworks():
    folders = {fence.page.parent for fence in of("sh", "install")}

    assert folders == {ROOT / "docs" / "frameworks"}


def test_files_that_a_page_shows_are_used_on_it():
    unused = []
    for fence in of("yaml", "file"):
        name = fence.text.split(maxsplit=2)[1]
        rest = [other.text for other in fences(fence.page) if other.language == "sh" and other.line > fence.line]
        if not any(name in text for text in rest):
            unused.append(f"{fence.place}: {name}")

    assert unused == []


def test_output_must_have_the_expected_lines_in_their_order():
    output = "NAME   PHASE\npi-1   Running\npi-2   Pending\n"

    assert missing_line(output, ["NAME PHASE", "pi-… Pending"]) == ""
    assert missing_line(output, ["pi-2 …", "pi-1 …"]) == "pi-1 …"
    assert missing_line(output, ["pi"]) == "pi"


def test_blocks_become_what_their_words_say(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```sh up\nvolcano up --nodes 2   # two\n```\n```yaml file\n# a.yaml\na: 1\n```\n- in a list\n\n"
        "  ```sh slow needs=mpirun,sshd\n  cat a.yaml\n  ```\n\n```text see\na: …\n```\n\n    indented\n"
    )

    read = read_page(page)

    assert (read.up, read.is_slow, read.needs) == ("volcano up --nodes 2", True, ["mpirun", "sshd"])
    assert [block.is_typed for block in read.runs] == [False, True]
    assert (read.runs[1].script, read.runs[1].see) == ("cat a.yaml\n", ["a: …"])
    assert [fence.is_classified for fence in fences(page)] == [True, True, True, True, False]


@pytest.mark.parametrize("info", ["", "sh", "sh elsewhere", "yaml run", "text see more", "console"])
def test_unclear_info_strings_are_not_a_classification(tmp_path, info):
    assert not Fence(tmp_path, 1, info, "").is_classified


def test_expected_output_without_a_command_is_refused(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```text see\nhello\n```\n")

    with pytest.raises(PageError, match="before any `run` block"):
        read_page(page)
