"""The help screens: everything there is, in plain words, with examples that run; and what cannot be understood."""

import shlex
from pathlib import Path

import pytest

from volcano.cli.command_line import GLOBAL_FLAGS, help_screen
from volcano.cli.programs import ALIASES, VCCTL

from .help_examples import needs_a_system

GLOBAL = """\
      --log-flush-frequency duration   Maximum number of seconds between log flushes (default 5s)
  -v, --v Level                        number for the log level verbosity
      --vmodule moduleSpec             comma-separated list of pattern=N settings for file-filtered logging (only works for the default text log format)
"""
ROOT = f"""\
Jobs, queues and flows of Volcano

Usage:
  vcctl [command]

Everyday:
  job           Submit jobs, list them, look at them and end them: run, list, view, logs, wait, suspend, resume, delete, exec, shell, attach, history, eta, explain
  queue         Create queues, list them, open and close them: list, get, view, tree, create, update, operate, delete
  jobflow       Run jobs that wait for one another: create, list, get, delete, view, describe
  jobtemplate   Keep the jobs that flows are made of: create, list, get, delete, describe

Looking closer:
  pod           List the pods of jobs and queues: list
  node          See what nodes have and what is free: list
  explain       Say why anything waits or fails, whether waiting will help, and which change lets it run
  scheduler     See what the scheduler does and how it is configured: status
  top           Show jobs, queues and nodes, live in the terminal with keys, once elsewhere
  usage         Report CPU-, memory- and GPU-hours, waits and efficiency by queue, user, namespace and day

Administration:
  reservation   Keep nodes or amounts free for a holder in a window of time: create, list, view, delete
  completion    Print the completion script of all programs for bash, zsh or fish
  version       Print the version

Flags:
  -h, --help                           help for vcctl
{GLOBAL}
Examples:
  vcctl job run -f examples/gang.yaml
  vcctl job list
  vcctl job explain gang
  vcctl queue tree
  vcctl top

Use "vcctl [command] --help" for more information about a command.
"""
JOB = f"""\
Submit jobs, list them, look at them and end them

Usage:
  vcctl job [command]

Everyday:
  run       Submit a job that a file or the flags describe
  list      List jobs with their phases and pods
  view      Show everything about a job, with its events
  logs      Show what the pods of a job print
  wait      Wait until jobs are in a phase; the exit code is 1 when they will not be
  suspend   End the pods of a job and keep it, to be resumed
  resume    Start a suspended job again
  delete    Delete jobs and their pods

Looking closer:
  exec      Run a command in a pod of a job
  shell     Open a shell in a pod of a job
  attach    Show what a pod of a job goes on printing, and type to it with -i
  history   Tell what happened to a job, also after it is gone; without a name list past jobs
  eta       Say when a waiting job is expected to start, and after which others
  explain   Say why a job waits, and whether waiting will help

Flags:
  -h, --help   help for job

Global Flags:
{GLOBAL}
Examples:
  vcctl job run -f examples/gang.yaml
  vcctl job list
  vcctl job view gang
  vcctl job explain gang
  vcctl job delete gang

Use "vcctl job [command] --help" for more information about a command.
"""


def screens(path):
    """Every command with the way to it."""
    yield path
    for child in path[-1].children:
        if not child.hidden:
            yield from screens([*path, child])


ALL = [path for root in (VCCTL, *ALIASES.values()) for path in screens([root])]
LEAVES = [path for path in ALL if path[-1].run]


def title(path):
    return " ".join(command.name for command in path)


@pytest.mark.parametrize(
    ("line", "screen"),
    [
        ("vcctl --help", ROOT),
        ("vcctl", ROOT),
        ("vcctl help", ROOT),
        ("vcctl job --help", JOB),
        ("vcctl job", JOB),
        ("vcctl help job", JOB),
    ],
)
def test_the_first_screens(call, line, screen):
    answer = call(line, connected=False)

    assert (answer.out, answer.err, answer.code) == (screen, "", 0)


@pytest.mark.parametrize("path", ALL, ids=title)
def test_every_command_and_flag_is_shown_with_a_description(path):
    screen = help_screen(path)

    assert path[-1].short, "it says what it does"
    for child in path[-1].children:
        assert child.hidden or f"  {child.name} " in screen
    for flag in (*path[-1].flags, *path[-1].script_flags, *GLOBAL_FLAGS):
        assert flag.help and f"--{flag.name}" in screen


@pytest.mark.parametrize("path", LEAVES, ids=title)
def test_its_examples_run(call, server, path, monkeypatch, tmp_path):
    root = Path(__file__).parents[3]
    monkeypatch.chdir(root)
    given = {"job list", "job run", "vsub", "queue create", "reservation create", "version", "completion", "top"}
    words = title(path)
    for example in path[-1].examples:
        if needs_a_system(example):
            continue  # tests/system/test_help_examples.py runs those
        server.clear()
        if not any(words.endswith(each) for each in given):
            prepare(server)
        program, *rest = shlex.split(example)
        answer = call(program, *rest, connected=words not in ("vcctl version", "vcctl completion"))
        assert answer.code == 0, (example, answer.err)


def prepare(server):
    """What examples name."""
    container = {"name": "c", "image": "i"}
    spec = {"tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [container]}}}]}
    for name in ("gang", "other", "gang-2"):
        metadata = {"name": name, "namespace": "default", "labels": {"team": "a"}}
        server.create("batch.volcano.sh", "Job", {"metadata": metadata, "spec": spec})
    window = {"start": "2099-01-01T00:00:00Z", "duration": "2h"}
    spec = {"user": "alice", "resources": {"cpu": "1"}, **window}
    server.create("reservation.volcano.sh", "Reservation", {"metadata": {"name": "course"}, "spec": spec})
    for name in ("research", "default"):
        server.create("scheduling.volcano.sh", "Queue", {"metadata": {"name": name}, "spec": {"weight": 1}})


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("vcctl frob", 'Error: unknown command "frob" for "vcctl"'),
        ("vcctl job foo", 'Error: unknown command "foo" for "vcctl job"'),
        ("vcctl qeue", "did you mean queue?"),
        ("vcctl job delte", "did you mean delete?"),
        ("vcctl job veiw", "did you mean view?"),
        ("vcctl job list --namspace x", "unknown flag: --namspace; did you mean namespace?"),
        ("vcctl job list gang", '"vcctl job list" takes no argument, but "gang" was given'),
        ("vcctl queue get one two", '"vcctl queue get" takes one argument, but "two" follows'),
        ("vcctl job list --frob", "Error: unknown flag: --frob"),
        ("vcctl job list -Z", "Error: unknown shorthand flag: 'Z' in -Z"),
        (
            "vcctl job run -m many",
            'Error: invalid argument "many" for "-m, --min" flag: strconv.ParseInt: parsing "many": invalid syntax',
        ),
        ("vcctl queue create -w 99999999999", "value out of range"),
        ("vcctl job list -n", "Error: flag needs an argument: 'n' in -n"),
        ("vcctl job list --queue", "Error: flag needs an argument: --queue"),
    ],
)
def test_what_cannot_be_understood_goes_to_stderr_with_code_1(call, line, says):
    answer = call(line, connected=False)

    assert says in answer.err
    assert (answer.out, answer.code) == ("", 1)


def test_underscores_in_flag_names_are_dashes_and_shorts_can_be_glued(call, server):
    assert call("vcctl job list --all_namespaces").out == "No resources found\n"
    assert call("vcctl job list -ndefault").code == 0
    assert call("vcctl job list -n=default").code == 0


def test_version_has_six_lines(call):
    answer = call("vcctl version", connected=False)

    names = [line.partition(": ")[0] for line in answer.out.splitlines()]
    assert names == ["API Version", "Version", "Git SHA", "Built At", "Go Version", "Go OS/Arch"]
    assert answer.code == 0


def test_an_unreadable_kubeconfig_is_reported_first(call, tmp_path):
    missing = tmp_path / "none"

    answer = call(f"vcctl job run --kubeconfig {missing}", connected=False)

    assert answer.err == f"Failed to run job: there is no kubeconfig at {missing}\n"
    assert answer.code == 255
