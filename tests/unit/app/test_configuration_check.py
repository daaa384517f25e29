"""`volcano scheduler --check-conf`: all errors at once, with their lines, in a file or in a ConfigMap's manifest."""

import textwrap

import pytest

from volcano.app.configuration_check import check_configuration
from volcano.scheduler.service.shipped_configuration import DEFAULT_CONFIGURATION

WRONG = """\
actions: "enqueue, alocate, backfil"
tier: []
tiers:
- plugins:
  - {}
  - name: priority
  - name: gangg
- plugins:
  - name: predicates
  - name: gang
    enableJobOrdr: true
    enablePreemptable: maybe
  - name: binpack
    arguments:
      binpack.cpu: 1
      binpack.weigth: 3
configurations:
- name: preempt
  arguments: {foo: 1}
"""
FOUND = [
    (1, "error: failed to find Action alocate; did you mean allocate?"),
    (1, "error: failed to find Action backfil; did you mean backfill?"),
    (2, "warning: the key tier is unknown and ignored; did you mean tiers?"),
    (5, "error: a plugin needs a name: {}"),
    (7, "warning: tier 1: no plugin is called gangg; it is left out; did you mean gang?"),
    (11, "warning: the key enableJobOrdr of plugin gang is unknown and ignored; did you mean enableJobOrder?"),
    (12, "error: enablePreemptable of plugin gang is not a boolean: 'maybe'"),
    (16, "warning: tier 2: plugin binpack knows no argument binpack.weigth; did you mean binpack.weight?"),
    (18, "warning: configurations: preempt is not among the actions"),
    (19, "warning: configurations: action preempt knows no argument foo"),
]
MANIFEST = """\
apiVersion: v1
kind: Namespace
metadata: {name: volcano-system}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: volcano-scheduler-configmap
data:
  volcano-scheduler.conf: |
"""


@pytest.fixture
def check(tmp_path, capsys):
    def _check(text):
        path = tmp_path / "file"
        path.write_text(text)
        code = check_configuration(str(path))
        captured = capsys.readouterr()
        return code, captured.out.replace(str(path), "file"), captured.err.replace(str(path), "file")

    return _check


def in_configmap(text):
    return MANIFEST + textwrap.indent(text, "    ")


def test_everything_that_is_wrong_is_said_with_its_line(check):
    code, out, err = check(WRONG)

    assert (code, out) == (1, "")
    assert err.splitlines() == [*(f"file:{line}: {text}" for line, text in FOUND), "file: refused, 4 errors"]


def test_lines_of_a_configmap_are_lines_of_its_file(check):
    code, _, err = check(in_configmap(WRONG))

    above = MANIFEST.count("\n")
    assert code == 1
    assert err.splitlines()[:-1] == [f"file:{line + above}: {text}" for line, text in FOUND]


@pytest.mark.parametrize("wrapped", [str, in_configmap], ids=["file", "configmap"])
def test_a_good_one_is_fine(check, wrapped):
    code, out, err = check(wrapped(DEFAULT_CONFIGURATION))

    assert (code, err) == (0, "") and out.startswith("file: fine; actions enqueue, allocate, backfill; plugins ")


def test_doubts_alone_are_no_refusal_but_fail_the_check(check):
    code, _, err = check("actions: allocate\ntiers: [{plugins: [{name: gang}]}]\n")

    assert code == 1 and err.splitlines()[-1] == "file: accepted, with doubts"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "file: error: the configuration is empty"),
        ("- a\n", "file:1: error: the configuration is not a map"),
        ("actions: [\n", "file: error: not YAML: line 2, column 1: "),
        (
            "actions: allocate\ntiers: {a: b}\nmetrics: [1]\n",
            "file:2: error: tiers is not a list\nfile:3: error: metrics is not a map",
        ),
    ],
)
def test_what_is_no_configuration_is_refused(check, text, says):
    code, _, err = check(text)

    assert code == 1 and says in err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n", "neither a configuration nor a ConfigMap with one"),
        (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: b}\n",
            "no key volcano-scheduler.conf; it has a",
        ),
    ],
)
def test_a_file_without_any_is_two(check, text, says):
    code, _, err = check(text)

    assert code == 2 and says in err


def test_a_file_that_is_not_there_is_two(tmp_path, capsys):
    assert check_configuration(str(tmp_path / "none")) == 2
    assert "cannot be read" in capsys.readouterr().err
