"""Commands that need a terminal: shells in pods, as a user types into them."""

from __future__ import annotations

import os
import pty
import select
import sys
import time

import pytest

from .real_system import DEADLINE, JOBS, environment, running_up

PROMPTS = ("# ", "$ ")
"""Of shells of root and of other users."""
PROGRAM = "import sys; from volcano.cli.programs import run_program; sys.exit(run_program(sys.argv[1], sys.argv[2:]))"


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """Run a program at a terminal; after each text that it shows, or one of several, something is typed.

    Returns what it showed, and its code.
    """
    folder = tmp_path_factory.mktemp("terminal")
    (folder / "work").mkdir()
    with running_up(folder) as up:
        variables = environment(folder, KUBECONFIG=str(up.data / "kubeconfig"), TERM="xterm", PS1="> ")

        def call(words, *dialogue):
            process, terminal = pty.fork()
            if process == 0:
                os.chdir(folder / "work")
                os.execve(sys.executable, [sys.executable, "-c", PROGRAM, *words], variables)
            shown, waiting, end = b"", list(dialogue), time.monotonic() + DEADLINE
            while time.monotonic() < end:
                if select.select([terminal], [], [], 0.1)[0]:
                    try:
                        shown += os.read(terminal, 65536)
                    except OSError:  # Linux reports the end of a terminal as an error
                        break
                texts = ((waiting[0][0],) if isinstance(waiting[0][0], str) else waiting[0][0]) if waiting else ()
                if any(text.encode() in shown for text in texts):
                    os.write(terminal, waiting.pop(0)[1].encode())
            return shown.decode(errors="replace"), os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])

        yield up, call


def test_vrun_with_a_terminal_is_a_shell_in_a_pod_with_its_exit_code(typed):
    _, call = typed

    shown, code = call(
        ["vrun", "--pty", "sh", "-c", "echo ready; read line; echo got-$line; tty; exit 5"], ("ready", "hello\n")
    )

    assert "got-hello" in shown and "/dev/pts/" in shown
    assert code == 5


def test_exec_and_shell_reach_a_running_pod_of_a_job(typed):
    up, call = typed
    container = {"name": "c", "image": "python:3", "command": ["sleep", "600"]}
    task = {"name": "t", "replicas": 1, "template": {"spec": {"restartPolicy": "Never", "containers": [container]}}}
    body = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "long"}}
    up.api.create(JOBS, {**body, "spec": {"tasks": [task]}})
    up.until_phase("long", "Running")

    shown, code = call(["vcctl", "job", "exec", "long", "--", "sh", "-c", "hostname; exit 3"])
    assert "long-t-0" in shown and code == 3
    shown, code = call(["vcctl", "job", "shell", "long"], (PROMPTS, "echo $((6 * 7)); exit 4\n"))
    assert "42" in shown and code == 4
    shown, code = call(["vcctl", "job", "exec", "long", "--pod", "long-t-9", "--", "true"])
    assert code == 255 and "did you mean long-t-0" in shown
