"""Thirty misspellings as people type them, with the answers that they get."""

import subprocess
import sys

import pytest

from volcano.api.manifest_fields import field_problems

COMMANDS = [
    ("vcctl jbo list", "did you mean job?"),
    ("vcctl jobs list", "did you mean job?"),
    ("vcctl quue list", "did you mean queue?"),
    ("vcctl jobflwo list", "did you mean jobflow?"),
    ("vcctl nodes list", "did you mean node?"),
    ("vcctl tpo", "did you mean top?"),
    ("vcctl verison", "did you mean version?"),
    ("vcctl completoin bash", "did you mean completion?"),
    ("vcctl job lst", "did you mean list?"),
    ("vcctl job rum -f x.yaml", "did you mean run?"),
    ("vcctl job vew gang", "did you mean view?"),
    ("vcctl job log gang", "did you mean logs?"),
    ("vcctl job dlete gang", "did you mean delete?"),
    ("vcctl job suspned gang", "did you mean suspend?"),
    ("vcctl job resmue gang", "did you mean resume?"),
    ("vcctl job explian gang", "did you mean explain?"),
    ("vcctl job wiat gang", "did you mean wait?"),
    ("vcctl queue tre", "did you mean tree?"),
    ("vcctl queue crate -n q", "did you mean create?"),
    ("vcctl job list --all-namespace", "did you mean all-namespaces?"),
    ("vcctl job list --ouput json", "did you mean output?"),
    ("vcctl job run --filenme x.yaml", "did you mean filename?"),
    ("vcctl queue create --wieght 2", "did you mean weight?"),
    ("vjobs --fromat %i", "did you mean format?"),
    ("vcancel --sttes PD", "did you mean states?"),
    ("vsub --job-nmae=x --wrap true", "did you mean job-name?"),
    ("vsub --ntaks=4 --wrap true", "did you mean ntasks?"),
    ("vrun --partiton=a hostname", "did you mean partition?"),
]


@pytest.mark.parametrize(("line", "answer"), COMMANDS, ids=[line for line, _ in COMMANDS])
def test_a_misspelt_word_is_answered_with_the_nearest(call, line, answer):
    done = call(line, connected=False)

    assert done.code != 0 and done.out == ""
    assert answer in done.err


@pytest.mark.parametrize(
    ("word", "answer"), [("dwon", "down"), ("statsu", "status"), ("docter", "doctor"), ("simulat", "simulate")]
)
def test_a_misspelt_command_of_volcano_is_answered_with_the_nearest(word, answer):
    done = subprocess.run([sys.executable, "-m", "volcano", word], capture_output=True, text=True, timeout=60)

    assert done.returncode != 0 and done.stdout == ""
    assert f"did you mean {answer}?" in done.stderr


@pytest.mark.parametrize(("field", "answer"), [("minAvailabel", "minAvailable"), ("queu", "queue"), ("task", "tasks")])
def test_a_misspelt_field_is_answered_with_the_nearest(field, answer):
    text = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {{name: x}}\nspec:\n  {field}: 1\n"

    (problem,) = field_problems(text, source="x.yaml")

    assert "5" in problem and f"did you mean {answer}?" in problem
