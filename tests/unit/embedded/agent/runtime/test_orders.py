"""Paths of a container where nothing can be mounted."""

from __future__ import annotations

import pytest

from volcano.embedded.agent.runtime.orders import with_paths

PATHS = {"/data": "/v/1", "/data/fast": "/v/2", "/usr/sbin/sshd": "/own/sshd"}


@pytest.mark.parametrize(
    ("text", "replaced"),
    [
        ("cat /data/a /data/fast/b", "cat /v/1/a /v/2/b"),
        ("/usr/sbin/sshd -D; echo", "/own/sshd -D; echo"),
        ("--in=/data:/data2", "--in=/v/1:/data2"),
        ('open("/data")', 'open("/v/1")'),
        ("/mnt/data /data.old /data-x", "/mnt/data /data.old /data-x"),
    ],
)
def test_paths_of_volumes_are_replaced_as_whole_names_only(text, replaced):
    assert with_paths(text, PATHS) == replaced
    assert with_paths(text, {}) == text
