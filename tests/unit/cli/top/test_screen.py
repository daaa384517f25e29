"""The screen: as many lines as the terminal has, none wider, whatever is on it."""

import re

import pytest
from rich.cells import cell_len

from volcano.cli.top.browser import Browser
from volcano.cli.top.drawing import Style
from volcano.cli.top.screen import screen_lines

from .pictures import job, node, picture, pod, queue

PLAIN = Style(has_colours=False)
CLUSTER = picture(
    jobs=[
        job("train", running=1),
        job(
            "waits",
            "Pending",
            message="4 of 4 pods unschedulable: 3 nodes with too little cpu, \x1b[2J日本語",
            queue="q",
        ),
    ],
    nodes=[node("n1", **{"nvidia.com/gpu": "4"}), node("n2")],
    pods=[pod("train-worker-0", "train", "n1", cpu="6", memory="16Gi", **{"nvidia.com/gpu": "1"})],
    queues=[queue("q", weight=3, capability={"cpu": "4"}, deserved={"cpu": "2"})],
    phases={"q": {"Pending": 1}},
    looked_at=("team", "train"),
    events=[{"reason": "PodGroupPending", "message": "too early", "type": "Warning"}],
)


def lines(browser, width=100, height=16, style=PLAIN, error="", shown=CLUSTER):
    return screen_lines(browser, shown, (width, height), style, error)


def test_jobs_with_bars_and_the_reason_why_one_waits():
    shown = lines(Browser())

    assert "nodes 2/2 ready  cpu ████░░░░░░ 6/16  memory ██░░░░░░░░ 16Gi/64Gi  jobs 1 running, 1 pend" in shown[0]
    assert shown[1].split() == ["1", "Jobs", "(2)", "2", "Queues", "(1)", "3", "Nodes", "(2)"]
    assert shown[3] == "NAME   NAMESPACE  QUEUE    PHASE*   PODS               AGE  WAITS FOR"
    assert (
        shown[5]
        == "waits  team       q        Pending  ░░░░░░░░░░░░ 0/2   5m   4 of 4 pods unschedulable: 3 nodes with…"
    )
    assert shown[-1].startswith("q quit")


def test_nodes_with_their_gpus():
    shown = lines(Browser("nodes"))

    assert shown[3].split() == ["NAME", "STATE", "CPU*", "MEMORY", "PODS", "GPU", "STRANDED"]
    assert re.search(r"n1    Ready  █████████░░░ 6/8   ██████░░░░░░ 16Gi/32Gi  1/110  ███░░░░░░░░░ 1/4", shown[4])
    assert shown[5].rstrip().endswith("0/110               -    -")


def test_queues_measure_against_their_capability():
    (row,) = [line for line in lines(Browser("queues"), width=140) if line.startswith("\x1b[7mq ")]

    assert "█████████░░░ 3/4" in row


def test_a_job_is_shown_with_its_tasks_pods_and_events():
    shown = "\n".join(lines(Browser(detail=("team", "train")), height=30))

    assert "Job              team/train" in shown
    assert "worker           ██████████░░░░░░░░░░ 1/2  1 running" in shown
    assert "train-worker-0  train  Running  n1" in shown
    assert "PodGroupPending: too early" in shown


def test_a_queue_and_a_node_are_shown_with_their_amounts():
    assert "3/4, deserved 2, at most 4" in "\n".join(lines(Browser("queues", detail=("", "q")), height=30))
    of_node = "\n".join(lines(Browser("nodes", detail=("", "n1")), height=30))
    assert "nvidia.com/gpu   █████░░░░░░░░░░░░░░░ 1/4" in of_node and "train-worker-0" in of_node


def test_an_object_that_is_gone_is_said():
    assert "old is gone" in "\n".join(lines(Browser(detail=("team", "old"))))


@pytest.mark.parametrize("style", [Style(), PLAIN, Style(has_blocks=False)], ids=str)
@pytest.mark.parametrize("size", [(200, 50), (80, 24), (40, 10), (20, 5), (5, 2), (1, 1)], ids=str)
@pytest.mark.parametrize(
    "browser", [Browser(), Browser("queues"), Browser("nodes"), Browser(detail=("team", "train"))], ids=lambda b: b.kind
)
def test_nothing_is_larger_than_the_terminal(browser, size, style):
    width, height = size

    for error in ("", "no answer " * 40):
        shown = lines(browser, width, height, style, error)
        bare = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown]
        assert len(bare) == height
        assert all(cell_len(line) <= width for line in bare)
        assert all(character.isprintable() for line in bare for character in line), "texts cannot move the cursor"
        assert style.has_blocks or all(ord(c) < 128 for line in bare for c in line if c not in "日本語")


def test_colours_are_only_where_they_are_wanted():
    assert not re.search(r"\x1b\[3\dm", "".join(lines(Browser())))
    assert "\x1b[33mPending" in "".join(lines(Browser(), style=Style()))


def test_an_error_takes_the_place_of_the_keys():
    assert lines(Browser(), error="no answer from the server")[-1] == "no answer from the server"
