"""Programs that init containers use and a machine may lack, for images like busybox where busybox is not installed.

A program of its own: `python shell_programs.py NAME ARGUMENTS`. Each takes the options that such containers use, and
refuses others by name. Standard library only; images.md lists them.
"""

from __future__ import annotations

import argparse
import os
import select
import socket
import ssl
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import BinaryIO

COPY_CHUNK_BYTES = 65536
DEFAULT_TIMEOUT_SECONDS = 900.0
SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86400}
NOT_EXECUTABLE, NOT_FOUND = 126, 127


class ArgumentsRefused(ValueError):
    """The arguments cannot be used; the message says why."""


def nslookup(words: list[str]) -> int:
    """The addresses of a name, as the container's resolver finds them."""
    names = [word for word in words if not word.startswith("-")]
    if not names:
        raise ArgumentsRefused("nslookup: a name is expected")
    name = names[0]
    try:
        found = dict.fromkeys(info[4][0] for info in socket.getaddrinfo(name, None))
    except OSError as error:
        print(f"** server can't find {name}: {error.args[-1]}", file=sys.stderr)
        return 1
    print(f"Name:\t{name}")
    for address in found:
        print(f"Address: {address}")
    return 0


def wget(words: list[str]) -> int:
    """Fetch URLs."""
    parser = argparse.ArgumentParser("wget", allow_abbrev=False)
    parser.add_argument("-q", action="store_true", dest="quiet")
    parser.add_argument("-S", action="store_true", dest="shows_headers")
    parser.add_argument("-O", default="", dest="target", metavar="FILE")
    parser.add_argument("-T", type=float, default=DEFAULT_TIMEOUT_SECONDS, dest="timeout", metavar="SECONDS")
    parser.add_argument("--spider", action="store_true")
    parser.add_argument("--header", action="append", default=[])
    parser.add_argument("--no-check-certificate", action="store_false", dest="checks")
    parser.add_argument("urls", nargs="+", metavar="URL")
    given = parser.parse_args(words)
    headers = {name.strip(): value.strip() for name, _, value in (each.partition(":") for each in given.header)}
    context = ssl.create_default_context() if given.checks else ssl._create_unverified_context()
    for each in given.urls:
        url = each if "://" in each else f"http://{each}"
        request = urllib.request.Request(url, headers=headers, method="HEAD" if given.spider else "GET")
        try:
            with urllib.request.urlopen(request, timeout=given.timeout, context=context) as answer:
                if not given.spider:
                    _save(answer, given.target or url.rstrip("/").rpartition("/")[2] or "index.html")
        except urllib.error.HTTPError as error:
            print(f"wget: server returned error: HTTP/1.1 {error.code} {error.reason}", file=sys.stderr)
            return 1
        except OSError as error:
            print(f"wget: {url}: {getattr(error, 'reason', error)}", file=sys.stderr)
            return 1
    return 0


def nc(words: list[str]) -> int:
    """Connect, or listen with -l."""
    parser = argparse.ArgumentParser("nc", allow_abbrev=False)
    parser.add_argument("-l", action="store_true", dest="listens")
    parser.add_argument("-z", action="store_true", dest="only_tries")
    parser.add_argument("-p", type=int, default=0, dest="port")
    parser.add_argument("-w", type=float, default=None, dest="timeout", metavar="SECONDS")
    for ignored in "vnkN":
        parser.add_argument(f"-{ignored}", action="store_true")
    parser.add_argument("places", nargs="*", metavar="HOST PORT")
    given = parser.parse_args(words)
    try:
        if given.listens:
            with socket.create_server(("", given.port or int(given.places[-1]))) as server:
                return _exchange(server.accept()[0])
        host, number = given.places
        with socket.create_connection((host, int(number)), given.timeout) as made:
            made.settimeout(None)
            return 0 if given.only_tries else _exchange(made)
    except (ValueError, IndexError):
        raise ArgumentsRefused("nc: a host and a port are expected") from None
    except OSError as error:
        print(f"nc: {' '.join(given.places)}: {error.strerror or error}", file=sys.stderr)
        return 1


def sleep(words: list[str]) -> int:
    total = 0.0
    for word in words:
        unit = SECONDS_PER_UNIT.get(word[-1:], 0)
        try:
            total += float(word[:-1]) * unit if unit else float(word)
        except ValueError:
            raise ArgumentsRefused(f"sleep: invalid number '{word}'") from None
    try:
        select.select([], [], [], total if total != float("inf") else None)
    except OverflowError:
        select.select([], [], [])
    return 0


def cat(words: list[str]) -> int:
    code = 0
    for name in words or ["-"]:
        try:
            with open(0 if name == "-" else name, "rb", closefd=name != "-") as file:
                while chunk := file.read(COPY_CHUNK_BYTES):
                    sys.stdout.buffer.write(chunk)
        except OSError as error:
            print(f"cat: can't open '{name}': {error.strerror}", file=sys.stderr)
            code = 1
    return code


def env(words: list[str]) -> int:
    variables = dict(os.environ)
    while words and ("=" in words[0] or words[0] in ("-i", "-u")):
        word = words.pop(0)
        if word == "-i":
            variables = {}
        elif word == "-u":
            variables.pop(_next(words, word), None)
        else:
            name, _, value = word.partition("=")
            variables[name] = value
    if not words:
        print(*(f"{name}={value}" for name, value in variables.items()), sep="\n")
        return 0
    try:
        os.execvpe(words[0], words, variables)
    except OSError as error:
        print(f"env: can't execute '{words[0]}': {error.strerror}", file=sys.stderr)
        return NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE


def printenv(words: list[str]) -> int:
    if not words:
        return env([])
    found = [os.environ[name] for name in words if name in os.environ]
    print(*found, sep="\n", end="\n" if found else "")
    return 0 if len(found) == len(words) else 1


def hostname(words: list[str]) -> int:
    name = socket.gethostname()
    match words:
        case []:
            print(name)
        case ["-s"]:
            print(name.partition(".")[0])
        case ["-f"]:
            print(socket.getfqdn())
        case ["-i"]:
            print(socket.gethostbyname(name))
        case _:
            raise ArgumentsRefused(f"hostname: {' '.join(words)} is not known here")
    return 0


def seq(words: list[str]) -> int:
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        raise ArgumentsRefused("seq: whole numbers are expected") from None
    match numbers:
        case [last]:
            first, step = 1, 1
        case [first, last]:
            step = 1
        case [first, step, last] if step:
            pass
        case _:
            raise ArgumentsRefused("seq: [FIRST [STEP]] LAST is expected")
    print(*range(first, last + (1 if step > 0 else -1), step), sep="\n")
    return 0


def test(words: list[str]) -> int:
    """The shell's own test, which every machine has."""
    return subprocess.run(["sh", "-c", 'test "$@"', "test", *words], check=False).returncode


PROGRAMS: dict[str, Callable[[list[str]], int]] = {
    "nslookup": nslookup,
    "wget": wget,
    "nc": nc,
    "sleep": sleep,
    "cat": cat,
    "env": env,
    "printenv": printenv,
    "hostname": hostname,
    "seq": seq,
    "test": test,
    "true": lambda _words: 0,
    "false": lambda _words: 1,
}


def main(name: str, words: list[str]) -> int:
    try:
        code = PROGRAMS[name](words)
        sys.stdout.flush()
    except ArgumentsRefused as error:
        print(error, file=sys.stderr)
        return 2
    except (BrokenPipeError, KeyboardInterrupt):
        return 1
    return code


def _next(rest: list[str], word: str) -> str:
    if not rest:
        raise ArgumentsRefused(f"the option {word} needs a value")
    return rest.pop(0)


def _save(answer: BinaryIO, target: str) -> None:
    with open(1 if target == "-" else target, "wb", closefd=target != "-") as file:
        while chunk := answer.read(COPY_CHUNK_BYTES):
            file.write(chunk)


def _exchange(connection: socket.socket) -> int:
    """Copy the input to the connection and the connection to the output."""
    inputs: list[int | socket.socket] = [0, connection]
    while connection in inputs:
        for ready in select.select(inputs, [], [])[0]:
            if ready is connection:
                received = connection.recv(COPY_CHUNK_BYTES)
                if not received:
                    return 0
                os.write(1, received)
            else:
                given = os.read(0, COPY_CHUNK_BYTES)
                if given:
                    connection.sendall(given)
                else:
                    inputs.remove(0)
                    connection.shutdown(socket.SHUT_WR)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
