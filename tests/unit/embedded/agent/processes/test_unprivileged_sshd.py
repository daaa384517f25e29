"""What sshd is told where it does not run as root."""

from __future__ import annotations

import pytest

from volcano.embedded.agent.processes.unprivileged_sshd import (
    SshdRequest,
    SshdSettings,
    open_port,
    read_arguments,
    server_config,
)

SETTINGS = SshdSettings(
    program="/usr/sbin/sshd",
    folder="/run/volcano/ssh",
    keys="/root/.ssh",
    host_key="/run/volcano/ssh/host_key",
    address="127.64.0.11",
    first_open_port=1024,
    path="",
    is_single_user=True,
)


@pytest.mark.parametrize(
    ("port", "first", "used"), [(22, 1024, 2222), (22, 0, 22), (22, 22, 22), (2022, 1024, 2022)]
)  # fmt: skip
def test_a_port_of_root_is_replaced_by_one_that_the_user_may_open(port, first, used):
    assert open_port(port, first) == used


@pytest.mark.parametrize(
    ("arguments", "request_read"),
    [
        ([], SshdRequest(22, "", [])),
        (["-D"], SshdRequest(22, "", ["-D"])),
        (["-De", "-p", "2022"], SshdRequest(2022, "", ["-De"])),
        (["-p2022", "-f", "/etc/ssh/mine"], SshdRequest(2022, "/etc/ssh/mine", [])),
        (["-o", "Port=2022", "-o", "LogLevel=DEBUG"], SshdRequest(2022, "", ["-o", "LogLevel=DEBUG"])),
        (["-oPort 2022", "-h", "/key"], SshdRequest(2022, "", ["-h", "/key"])),
        (["-D", "-p"], SshdRequest(22, "", ["-D", "-p", ""])),
    ],
)
def test_port_and_file_are_taken_from_the_arguments_and_the_rest_is_kept(arguments, request_read):
    assert read_arguments(arguments) == request_read


def test_sshd_listens_at_the_pods_address_and_accepts_the_pods_keys(tmp_path):
    own = tmp_path / "sshd_config"
    own.write_text("X11Forwarding no\n")

    lines = server_config(SETTINGS, SshdRequest(22, str(own), [])).splitlines()

    assert lines[:4] == [
        "Port 2222",
        "ListenAddress 127.64.0.11",
        "HostKey /run/volcano/ssh/host_key",
        "AuthorizedKeysFile /root/.ssh/authorized_keys",
    ]
    assert lines[-1] == f"Include {own}"


def test_a_file_that_cannot_be_read_is_left_out_and_sessions_get_a_path():
    text = server_config({**SETTINGS, "path": "/x:/bin"}, SshdRequest(22, "/nowhere/sshd_config", []))

    assert "Include" not in text and "SetEnv PATH=/x:/bin\n" in text
