"""`vcctl top` at a pseudo-terminal: keys, order, resizing, and a terminal that is always given back."""

import os

import pytest

from .terminal_screen import (
    CONTINUE,
    CTRL_C,
    CTRL_Z,
    DOWN,
    ENTER,
    ESCAPE,
    HANG_UP,
    PROGRAM,
    RIGHT,
    TERMINATE,
    AtTerminal,
)

HOLD_TERMINAL = """
import os, signal, subprocess, sys
signal.signal(signal.SIGINT, lambda *_: None)
print("code", subprocess.call([sys.executable, "-c", *sys.argv[1:]]))
os.read(0, 1)
"""
"""Runs a program and keeps the terminal after it, so that its state can be looked at."""
CRASH = f"""
from volcano.cli.top import top_command
drawn = top_command.screen_lines
def screen_lines(browser, *rest):
    if browser.kind == "nodes":
        raise ZeroDivisionError("a mistake in drawing")
    return drawn(browser, *rest)
top_command.screen_lines = screen_lines
{PROGRAM}
"""


@pytest.fixture
def cluster(server):
    """Three jobs, a queue, and three nodes of which one is busy."""
    server.clear()
    container = {"name": "c", "image": "i"}
    template = {"spec": {"containers": [container]}}
    for name in ("first", "second", "third"):
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "minAvailable": 1,
                "queue": "default",
                "tasks": [{"name": "t", "replicas": 2, "template": template}],
            },
        }
        server.create("batch.volcano.sh", "Job", body)
    server.create("scheduling.volcano.sh", "Queue", {"metadata": {"name": "default"}, "spec": {"weight": 4}})
    for name, cpu in (("node-a", "8"), ("node-b", "4"), ("node-c", "16")):
        status = {"allocatable": {"cpu": cpu, "memory": "16Gi", "pods": "110"}}
        server.create("", "Node", {"metadata": {"name": name}, "status": status})
    busy = {**container, "resources": {"requests": {"cpu": "3", "memory": "1Gi"}}}
    pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"nodeName": "node-b", "containers": [busy]}}
    server.create("", "Pod", pod)
    return server


@pytest.fixture
def at_terminal(cluster):
    opened = []

    def start(*words, program=PROGRAM, holds=False, **size):
        variables = {
            **os.environ, "KUBECONFIG": str(cluster.kubeconfig), "TERM": "xterm", "LC_ALL": "C.UTF-8",
            "PYTHONIOENCODING": "utf-8",
        }  # fmt: skip
        variables.pop("NO_COLOR", None)
        given = [program, "vcctl", "top", *words] if holds else ["vcctl", "top", *words]
        opened.append(AtTerminal(given, variables, program=HOLD_TERMINAL if holds else program, **size))
        return opened[-1]

    return start


def selected(screen):
    """The rows that are shown reversed, without the tabs."""
    return [screen.lines()[number].split()[0] for number in sorted(screen.reversed_lines) if number > 1]


def names(screen):
    return [line.split()[0] for line in screen.lines()[4:-1] if line]


def test_keys_select_open_go_back_and_quit(at_terminal):
    top = at_terminal()
    top.shows("third")
    assert top.screen.is_other and not top.screen.has_cursor
    assert top.until(lambda screen: selected(screen) == ["first"])

    top.type(DOWN)
    top.until(lambda screen: selected(screen) == ["second"], "the second row is selected")
    top.type(ENTER)
    top.shows("Job              default/second")
    top.type(ESCAPE)
    top.until(lambda screen: selected(screen) == ["second"], "back, with the row that was selected")
    top.type("q")

    assert top.end() == 0
    assert not top.screen.is_other and top.screen.has_cursor


def test_tabs_and_sorting(at_terminal):
    top = at_terminal("nodes")
    top.until(lambda screen: names(screen) == ["node-b", "node-a", "node-c"], "the busiest node first")
    assert "3/4" in top.screen.text() and "1Gi/16Gi" in top.screen.text()

    top.type("r")
    top.until(lambda screen: names(screen) == ["node-a", "node-c", "node-b"], "reversed")
    top.type("sss")
    top.until(lambda screen: names(screen) == ["node-a", "node-b", "node-c"] and "NAME*" in screen.text(), "by name")
    top.type(RIGHT)
    top.shows("WAITS FOR")
    top.type("2")
    top.shows("INQUEUE")
    top.type("q")

    assert top.end() == 0


def test_it_fills_the_terminal_again_after_a_resize(at_terminal):
    top = at_terminal("nodes")
    top.shows("node-c")

    top.resize(60, 9)
    top.until(lambda screen: screen.lines()[8].startswith("q quit") and "node-b" in screen.text(), "a small screen")
    top.resize(140, 30)
    top.until(lambda screen: screen.lines()[29].startswith("q quit") and "node-c" in screen.text(), "a large screen")
    top.type("q")

    assert top.end() == 0


@pytest.mark.parametrize(
    ("how", "code"), [(CTRL_C, 0), ("q", 0), (TERMINATE, 143), (HANG_UP, 129)], ids=["ctrl-c", "q", "term", "hang-up"]
)
def test_however_it_ends_the_terminal_is_as_before(at_terminal, how, code):
    top = at_terminal(holds=True)
    top.shows("third")

    if isinstance(how, str):
        top.type(how)
    else:
        children = os.popen(f"ps -o pid= --ppid {top.process}").read().split()
        os.kill(int(children[0]), how)
    top.until(lambda screen: f"code {code}" in screen.scrolled, "it ends")

    assert top.is_as_before()
    top.type("\n")
    assert top.end() == 0


def test_a_crash_gives_the_terminal_back_and_is_shown(at_terminal):
    top = at_terminal(program=CRASH, holds=True)
    top.shows("third")

    top.type("3")
    top.until(lambda screen: "code 1" in screen.scrolled, "it crashes")

    assert "ZeroDivisionError: a mistake in drawing" in top.screen.scrolled
    assert top.is_as_before()
    top.type("\n")
    top.end()


def test_control_z_gives_the_terminal_to_the_shell_and_continues(at_terminal):
    top = at_terminal()
    top.shows("third")

    top.type(CTRL_Z)
    top.until_stopped()
    assert top.is_as_before()
    top.signal(CONTINUE)
    top.until(lambda screen: screen.is_other and "third" in screen.text(), "the screen is back")
    top.type("q")

    assert top.end() == 0


def test_new_objects_appear(at_terminal, cluster):
    top = at_terminal("queues", "--interval", "500ms")
    top.shows("default")

    cluster.create("scheduling.volcano.sh", "Queue", {"metadata": {"name": "research"}, "spec": {"weight": 2}})
    top.shows("research")
    top.type("q")

    assert top.end() == 0


def test_once_and_without_a_terminal_it_prints_plain_tables(call, cluster, at_terminal):
    answer = call("vcctl top nodes")
    assert (answer.code, answer.err) == (0, "")
    assert [line.split()[:3] for line in answer.out.splitlines()] == [
        ["NAME", "STATE", "CPU"], ["node-b", "NotReady", "3/4"], ["node-a", "NotReady", "0/8"],
        ["node-c", "NotReady", "0/16"],
    ]  # fmt: skip
    assert "\x1b" not in answer.out and "█" not in answer.out
    for title in ("Queues (1)", "Jobs (3)", "Nodes (3)"):
        assert title in call("vcctl top").out
    assert [line.split()[0] for line in call("vcctl top nodes --sort name").out.splitlines()] == [
        "NAME", "node-a", "node-b", "node-c",
    ]  # fmt: skip

    once = at_terminal("nodes", "--once")
    assert once.end() == 0 and "node-c" in once.screen.scrolled and not once.screen.is_other


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("vcctl top nods", "unknown table 'nods', one of jobs, queues, nodes; did you mean nodes?"),
        ("vcctl top nodes --sort cpus", "did you mean cpu?"),
        ("vcctl top --interval soon", "invalid duration"),
    ],
)
def test_mistakes_are_said(call, line, says):
    answer = call(line)

    assert answer.code != 0 and says in answer.err and answer.out == ""


def test_no_system_is_said_in_the_usual_way(call, at_terminal, cluster, tmp_path):
    top = at_terminal("--master", "http://127.0.0.1:1")

    assert top.end() == 255
    assert "Start a system on this machine:  volcano up" in top.screen.scrolled and not top.screen.is_other
