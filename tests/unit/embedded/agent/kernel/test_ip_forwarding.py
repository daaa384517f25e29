"""IP forwarding is turned on by the first pod network of a machine and off by the last."""

from __future__ import annotations

from pathlib import Path

import pytest

from volcano.embedded.agent.kernel import ip_forwarding


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ip_forwarding, "SWITCH", tmp_path / "switch")
    monkeypatch.setattr(ip_forwarding, "NOTES", tmp_path)
    monkeypatch.setattr(ip_forwarding, "DEVICES", tmp_path / "net")
    (tmp_path / "switch").write_text("0\n")
    return tmp_path


def add_bridge(machine: Path, name: str) -> None:
    (machine / "net" / name / "bridge").mkdir(parents=True)


def remove_bridge(machine: Path, name: str) -> None:
    (machine / "net" / name / "bridge").rmdir()


def test_a_network_that_goes_leaves_forwarding_on_while_another_needs_it(machine: Path):
    for name in ("vcfirst", "vcsecond"):
        add_bridge(machine, name)
        ip_forwarding.turn_on()

    remove_bridge(machine, "vcfirst")
    ip_forwarding.turn_off_if_last("vc")
    assert (machine / "switch").read_text() == "1\n"

    remove_bridge(machine, "vcsecond")
    ip_forwarding.turn_off_if_last("vc")
    assert (machine / "switch").read_text() == "0\n"


def test_forwarding_that_was_on_before_stays_on(machine: Path):
    (machine / "switch").write_text("1\n")
    add_bridge(machine, "vcfirst")
    ip_forwarding.turn_on()

    remove_bridge(machine, "vcfirst")
    ip_forwarding.turn_off_if_last("vc")

    assert (machine / "switch").read_text() == "1\n"


def test_a_folder_for_notes_that_cannot_be_written_leaves_forwarding_on(machine: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ip_forwarding, "NOTES", machine / "missing")
    ip_forwarding.turn_on()

    ip_forwarding.turn_off_if_last("vc")

    assert (machine / "switch").read_text() == "1\n"
