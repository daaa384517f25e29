"""The misspellings of docs/reference/misspellings.md get the answers that the page gives."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from volcano.api.manifest_fields import field_problems

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "misspellings.md").read_text()
TYPED = re.findall(r"^\| `(.+?)` \| (did you mean .+?) \|$", PAGE, re.MULTILINE)
FIELDS = [(line.removeprefix("spec."), answer) for line, answer in TYPED if line.startswith("spec.")]
OF_VOLCANO = [(line, answer) for line, answer in TYPED if line.startswith("volcano ")]
COMMANDS = [pair for pair in TYPED if pair not in OF_VOLCANO and not pair[0].startswith("spec.")]


def test_there_are_thirty_and_more():
    assert len(COMMANDS) + len(OF_VOLCANO) >= 30 and len(FIELDS) >= 3


@pytest.mark.parametrize(("line", "answer"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_a_misspelt_word_is_answered_with_the_nearest(call, line, answer):
    done = call(line, connected=False)

    assert done.code != 0 and done.out == ""
    assert answer in done.err


@pytest.mark.parametrize(("line", "answer"), OF_VOLCANO)
def test_a_misspelt_command_of_volcano_is_answered_with_the_nearest(line, answer):
    words = [sys.executable, "-m", *line.split()]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode != 0 and done.stdout == ""
    assert answer in done.stderr


@pytest.mark.parametrize(("field", "answer"), FIELDS)
def test_a_misspelt_field_is_answered_with_the_nearest(field, answer):
    text = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: x}}\nspec:\n  {field}: 1\n"

    (problem,) = field_problems(text, source="x.yaml")

    assert "5" in problem and answer in problem
