"""What a user is told of the accelerators of the machine: real ones, and pretended ones."""

from __future__ import annotations

import shutil

import click
import pytest

from tests.vendor_tools import a_tool, nvidia_smi
from volcano.app.machine_devices import machine_devices, parse_claim_devices
from volcano.embedded.agent.devices.inventory import ALL_BY_CLAIMS


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """The only programs there are."""
    (tmp_path / "cat").symlink_to(shutil.which("cat"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return tmp_path


def test_an_amount_without_cards_is_a_pretence(tools):
    found = machine_devices(["n"], {"nvidia.com/gpu": "4", "example.com/x": "1"}, is_wanted=True, by_claims=0)

    assert found.inventory is None and found.amounts("n") == {}
    (note,) = found.notes
    assert note.startswith("nvidia.com/gpu=4 is only what --node-resources states") and note in found.annotation


def test_with_cards_an_amount_is_their_limit(tools):
    nvidia_smi(tools, range(2))

    found = machine_devices(["n"], {"nvidia.com/gpu": "1", "amd.com/gpu": "3"}, is_wanted=True, by_claims=0)

    assert found.amounts("n") == {"nvidia.com/gpu": "1"}
    assert found.annotation.startswith("nvidia.com/gpu: 2 x NVIDIA A100-SXM4-80GB; amd.com/gpu=3 is only what")


def test_without_detection_nothing_is_managed(tools):
    a_tool(tools, "nvidia-smi", f"echo > {tools}/asked")

    found = machine_devices(["n"], {}, is_wanted=False, by_claims=0)

    assert found.inventory is None and found.annotation == "not looked for (--no-devices)"
    assert not (tools / "asked").exists()


def test_how_many_go_to_claims():
    assert (parse_claim_devices("all"), parse_claim_devices("3")) == (ALL_BY_CLAIMS, 3)
    with pytest.raises(click.BadParameter, match="neither a number nor all"):
        parse_claim_devices("-1")
