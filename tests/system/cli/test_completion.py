"""Completion in real shells: one script for all programs, with names of the running system, silent without one."""

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from volcano.cli.completion import candidates, program_names, program_of

from .terminal_screen import DEADLINE

BIN = Path(sys.executable).parent
WORDS = [
    ("vcctl job li", "vcctl job list"),
    ("vcctl job view fi", "vcctl job view first"),
    ("kubectl-vc queue tr", "kubectl-vc queue tree"),
    ("vcancel fi", "vcancel first"),
    ("vjobs --nohe", "vjobs --noheader"),
    ("vsub --partition res", "vsub --partition research"),
    ("vcctl explain queue/res", "vcctl explain queue/research"),
    ("vcctl top no", "vcctl top nodes"),
    ("volcano schedu", "volcano scheduler"),
    ("volcano scheduler --check", "volcano scheduler --check-conf"),
]
"""What is typed, and what Tab makes of it."""
INVISIBLE = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]|\x07|.\x08")


@pytest.fixture
def variables(server, tmp_path):
    container = {"name": "c", "image": "i"}
    spec = {"tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"containers": [container]}}}]}
    server.create("batch.volcano.sh", "Job", {"metadata": {"name": "first", "namespace": "default"}, "spec": spec})
    server.create("scheduling.volcano.sh", "Queue", {"metadata": {"name": "research"}, "spec": {"weight": 1}})
    kept = {name: value for name, value in os.environ.items() if name not in ("VOLCANO_DATA_DIR", "ZDOTDIR")}
    return {
        **kept, "KUBECONFIG": str(server.kubeconfig), "HOME": str(tmp_path), "PATH": f"{BIN}:{kept['PATH']}",
        "TERM": "xterm", "PS1": "> ", "INPUTRC": "/dev/null",
    }  # fmt: skip


def at_prompt(words, variables, begin, lines):
    """A shell at a terminal: after `begin`, each line is completed by Tab and shown by echo instead of being run."""
    process, terminal = pty.fork()
    if process == 0:
        os.execvpe(words[0], words, variables)
    shown = ""

    def until(text):
        nonlocal shown
        end = time.monotonic() + DEADLINE
        while text not in shown:
            assert time.monotonic() < end, f"never: {text!r} in {shown!r}"
            if select.select([terminal], [], [], 0.1)[0]:
                shown = INVISIBLE.sub("", shown + os.read(terminal, 65536).decode(errors="replace"))

    try:
        for line in begin:
            os.write(terminal, f"{line}; echo don''e\n".encode())
            until("done\r\n")
            shown = ""
        for typed, completed in lines:
            os.write(terminal, f"{typed}\t".encode())
            until(f"{completed} " if not completed.endswith("/") else completed)
            os.write(terminal, b"\x15")
            shown = ""
    finally:
        os.close(terminal)
        os.waitpid(process, 0)


def test_tab_completes_in_bash(variables):
    begin = ["bind 'set enable-bracketed-paste off'", "source <(vcctl completion bash)"]
    at_prompt(["bash", "--noprofile", "--norc", "-i"], variables, begin, WORDS)


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed: apt-get install zsh")
def test_tab_completes_in_zsh(variables):
    begin = [
        "unsetopt zle_bracketed_paste",
        "autoload -U compinit && compinit -u -D",
        "source <(volcano completion zsh)",
    ]
    at_prompt(["zsh", "-f", "-i"], variables, begin, WORDS[::2])


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed: apt-get install fish")
def test_fish_has_the_same_candidates(variables):
    asked = "; ".join(f"complete -C '{typed}'; echo --" for typed, _ in WORDS)
    script = f"vcctl completion fish | source; {asked}"
    done = subprocess.run(["fish", "-N", "-c", script], env=variables, capture_output=True, text=True, timeout=120)

    for (typed, completed), found in zip(WORDS, done.stdout.split("--\n"), strict=False):
        assert completed.split()[-1] in found.split(), (typed, done)


def ask(variables, *words, program="vcctl"):
    line = [program, "__complete", "--", *words]
    done = subprocess.run(line, env=variables, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout.split()


def test_names_are_of_the_namespace_and_the_server_that_the_line_names(variables, server):
    assert ask(variables, "vcancel", "") == ["first"]
    assert ask(variables, "vcancel", "-N", "other", "") == []
    assert ask(variables, "vcctl", "job", "view", "-n", "other", "") == []
    assert "default" in ask(variables, "vcctl", "job", "list", "-n", "")
    elsewhere = {**variables, "KUBECONFIG": "/nonexistent"}
    assert ask(elsewhere, "vcancel", "--kubeconfig", str(server.kubeconfig), "fi") == ["first"]


@pytest.mark.parametrize("address", ["http://127.0.0.1:1", "nonsense", "http://[", ""])
def test_without_a_system_there_is_silence(variables, address):
    nothing = {**variables, "KUBECONFIG": "/nonexistent"}

    for words in (
        ["vcancel", ""],
        ["vcctl", "queue", "view", ""],
        ["vsub", "--partition="],
        ["vcctl", "explain", "vcjob/"],
    ):
        more = ["--master", address] if address else []
        assert ask(nothing, words[0], *words[1:-1], *more, words[-1]) == []


def test_a_program_or_shell_that_is_not_known_gets_nothing(variables):
    assert ask(variables, "ls", "") == []
    done = subprocess.run(["vcctl", "completion", "tcsh"], env=variables, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "bash, zsh, fish" in done.stderr


def test_values_behind_an_equals_sign_as_each_shell_gives_them(variables):
    assert ask(variables, "vcctl", "job", "list", "--queue=re") == ["--queue=research"]
    assert ask(variables, "vcctl", "job", "list", "--queue", "=", "re") == ["research"], "bash splits at the sign"
    assert ask(variables, "vcctl", "job", "list", "--output=j") == ["--output=json"]


def test_kubectl_is_answered_in_its_own_form(variables):
    done = subprocess.run(
        [sys.executable, "-c", "from volcano.cli.completion import complete_for_kubectl; complete_for_kubectl()", "job", "li"],
        env=variables, capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert done.stdout.splitlines() == ["list", ":4"]


@pytest.mark.parametrize("name", [name for name in program_names() if name != "volcano"])
def test_every_command_and_flag_of_every_program_is_offered(name):
    def check(command, words):
        offered = candidates(root, [*words, ""])
        for child in command.children:
            assert child.hidden or child.name in offered
            check(child, [*words, child.name])
        flags = candidates(root, [*words, "--"])
        assert {f"--{flag.name}" for flag in command.flags} <= {*flags}

    root = program_of(name)
    check(root, [])
