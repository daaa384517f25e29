"""The programs of our own that stand in for busybox's."""

from __future__ import annotations

import http.server
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from volcano.embedded.agent.containers import image_programs, shell_programs


def run(name: str, *words: str, stdin: str = "", **settings: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-I", shell_programs.__file__, name, *words]
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, timeout=60, check=False, **settings)  # type: ignore[call-overload,no-any-return]


@pytest.fixture
def url() -> Iterator[str]:
    class Answers(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/ok" else 404)
            self.end_headers()
            self.wfile.write(f"hello {self.headers.get('X-Name', 'you')}".encode())

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            return

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_wget_writes_to_the_output_or_to_a_file(url: str, tmp_path: Path):
    assert run("wget", "-qO-", f"{url}/ok").stdout == "hello you"
    assert run("wget", "-q", "--header", "X-Name: me", "-O", str(tmp_path / "f"), f"{url}/ok").returncode == 0
    assert (tmp_path / "f").read_text() == "hello me"
    assert run("wget", "-q", "-T", "5", "--spider", f"{url}/ok").returncode == 0


def test_wget_fails_with_the_servers_error(url: str):
    done = run("wget", "-qO-", f"{url}/missing")
    assert done.returncode == 1 and "404" in done.stderr


def test_nc_tries_a_port_and_exchanges_bytes(url: str):
    host, port = url.removeprefix("http://").split(":")
    assert run("nc", "-zv", "-w", "5", host, port).returncode == 0
    assert "hello" in run("nc", host, port, stdin="GET /ok HTTP/1.0\r\n\r\n").stdout
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert run("nc", "-z", "127.0.0.1", str(free.getsockname()[1])).returncode == 1


def test_nslookup_prints_addresses_or_fails():
    assert "Address: 127.0.0.1" in run("nslookup", "localhost").stdout
    assert run("nslookup", "127.0.0.300.invalid..").returncode == 1


@pytest.mark.parametrize(
    ("words", "output", "code"),
    [
        (["seq", "3"], "1\n2\n3\n", 0),
        (["seq", "5", "-2", "1"], "5\n3\n1\n", 0),
        (["sleep", "0.01s"], "", 0),
        (["sleep", "soon"], "", 2),
        (["true"], "", 0),
        (["false"], "", 1),
        (["test", "-d", "/"], "", 0),
        (["test", "1", "-gt", "2"], "", 1),
        (["hostname"], socket.gethostname() + "\n", 0),
        (["cat", "-"], "given", 0),
        (["cat", "/no/such/file"], "", 1),
        (["env", "-i", "A=1"], "A=1\n", 0),
        (["env", "A=1", "/no/such"], "", 127),
        (["printenv", "NO_SUCH_VARIABLE"], "", 1),
        (["nc", "only-a-host"], "", 2),
    ],
)
def test_a_small_program_does_what_its_namesake_does(words, output, code):
    done = run(*words, stdin="given")
    assert (done.stdout, done.returncode) == (output, code)


def test_an_unknown_option_is_named():
    assert "--mirror" in run("wget", "--mirror", "http://127.0.0.1").stderr


def test_without_busybox_the_folder_has_our_own_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    words = image_programs.make_programs(tmp_path / "programs")

    assert "apt-get install busybox" in words
    done = subprocess.run([str(tmp_path / "programs" / "seq"), "2"], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n2\n"


def test_with_busybox_the_folder_has_its_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake = tmp_path / "bin" / "busybox"  # a stand-in that lists its programs
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\n[ "$1" = --list ] && echo nslookup && echo vi\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")

    image_programs.make_programs(tmp_path / "programs")

    assert {path.name for path in (tmp_path / "programs").iterdir()} == {"nslookup", "vi"}
    assert (tmp_path / "programs" / "vi").readlink() == fake


def test_nslookup_is_ours_beside_busybox_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake = tmp_path / "bin" / "busybox"  # a stand-in whose nslookup fails, as for search domains without the name
    fake.parent.mkdir()
    fake.write_text('#!/bin/sh\n[ "$1" = --list ] && echo nslookup || exit 1\n')
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/bin:/bin")

    image_programs.make_programs(tmp_path / "programs")

    found = [str(tmp_path / "programs" / "nslookup"), "localhost"]
    assert "127.0.0.1" in subprocess.run(found, capture_output=True, text=True, check=True).stdout
