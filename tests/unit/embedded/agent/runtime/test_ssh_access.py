"""What a container with ssh keys gets where its user is not root."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests import needs
from volcano.api.kubelet import AgentContainer, VolumeMount
from volcano.embedded.agent.runtime.ssh_access import (
    FILES_AT,
    client_config,
    keys_mount,
    replaced_paths,
    ssh_script,
    write_access,
)

PLUGIN_CONFIG = "StrictHostKeyChecking no\nHost mpi-worker-0\n  HostName mpi-worker-0.mpi\n  Port 22\n"


def a_container(*mounts):
    return AgentContainer(name="main", volume_mounts=tuple(VolumeMount(*each) for each in mounts))


@pytest.fixture
def keys(tmp_path):
    folder = tmp_path / "keys"
    folder.mkdir()
    (folder / "id_rsa").write_text("a key\n")
    (folder / "config").write_text(PLUGIN_CONFIG)
    return folder


def test_the_folder_with_keys_is_found_wherever_the_plugin_mounts_it():
    assert keys_mount(a_container(("data", "/data"), ("keys", "/home/ann/.ssh"))).mount_path == "/home/ann/.ssh"
    assert keys_mount(a_container(("data", "/data"))) is None


def test_the_port_of_all_hosts_is_set_before_the_plugins_lines_since_the_first_counts():
    assert client_config(PLUGIN_CONFIG, 2222, None) == f"Port 2222\n{PLUGIN_CONFIG}"


@needs.SSHD
def test_with_mounts_the_scripts_paths_are_those_of_the_container(tmp_path, keys):
    access = write_access(tmp_path / "ssh", keys="/root/.ssh", source=keys, address="127.64.0.11", first_open_port=1024)

    settings = json.loads((tmp_path / "ssh" / "settings.json").read_text())
    assert access is not None and access.has_config and settings["host_key"] == f"{FILES_AT}/host_key"
    assert (tmp_path / "ssh" / "config").read_text().startswith("Port 2222\n")
    assert not (tmp_path / "ssh" / "ssh").exists()
    assert (tmp_path / "ssh" / "host_key").stat().st_mode & 0o777 == 0o600


def test_without_a_key_there_is_nothing_to_do(tmp_path):
    assert write_access(tmp_path, keys="/root/.ssh", source=tmp_path, address="", first_open_port=1024) is None


@needs.SSHD
def test_without_mounts_paths_of_volumes_and_of_sshd_are_replaced(tmp_path, keys):
    access = write_access(
        tmp_path / "ssh", keys="/root/.ssh", source=keys, address="127.64.0.11", first_open_port=1024,
        hosts=tmp_path / "hosts", path="/bin",
    )  # fmt: skip
    container = a_container(("data", "/data"), ("keys", "/root/.ssh", ".ssh"))

    found = replaced_paths(container, {"data": "/v/data", "keys": "/v/keys"}, {"/root/.ssh": ".ssh"}, access)

    assert found["/data"] == "/v/data" and found["/root/.ssh"] == "/v/keys/.ssh"
    assert found["/usr/sbin/sshd"] == str(tmp_path / "ssh" / "sshd")


def test_the_client_knows_the_names_of_the_hosts_file_as_it_is_when_it_starts(tmp_path):
    hosts, config, script = tmp_path / "hosts", tmp_path / "config", tmp_path / "ssh"
    hosts.write_text("# peers\n127.64.0.12\tmpi-worker-0.mpi mpi-worker-0\n")
    config.write_text(f"Port 2222\n{PLUGIN_CONFIG}")
    printer = tmp_path / "print"
    printer.write_text('#!/bin/sh\ncat "$2"\n')
    for each in (printer, script):
        each.touch()
    script.write_text(ssh_script(str(printer), hosts, config))
    script.chmod(0o755)
    printer.chmod(0o755)

    printed = subprocess.run([script, "mpi-worker-0"], capture_output=True, text=True, check=True, timeout=20).stdout

    assert printed.splitlines()[:4] == [
        "Host mpi-worker-0.mpi mpi-worker-0",
        "  HostName 127.64.0.12",
        "Host *",
        "Port 2222",
    ]
    assert Path(f"{config}").read_text().startswith("Port")
