"""Reading objects: several threads may decode a kind once its decoder is prepared."""

from __future__ import annotations

import subprocess
import sys

THREADS = """
import sys, threading
from volcano.api.core import Pod
from volcano.api.decode import decode, decode_object, prepare_decoders
from volcano.api.scheme import READERS

prepare_decoders(READERS)
sys.setswitchinterval(1e-6)
start = threading.Barrier(4)
body = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}
raw = b'{"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c"}]}}'

def read(number):
    start.wait()
    for _ in range(20):
        assert (decode(Pod, raw) if number % 2 else decode_object(Pod, body)).name == "a"

threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_decode_a_prepared_kind_at_once():
    """In a process of its own: without the preparation msgspec crashes it, in about one of four runs."""
    done = [subprocess.run([sys.executable, "-c", THREADS], capture_output=True, timeout=60) for _ in range(3)]

    assert [(each.returncode, each.stderr) for each in done] == [(0, b"")] * 3
