"""Finds cards by tools that tests play: what they print, and every way in which they fail."""

from __future__ import annotations

import os
import sys

import pytest

from tests.vendor_tools import a_tool, gpu_uuid, nvidia_smi
from volcano.embedded.agent.devices import vendor_tools
from volcano.embedded.agent.devices.detection import card_files, find_cards

AMD = '{"gpu_data": [{"gpu": 0, "asic": {"market_name": "MI300X", "asic_serial": "0x7"}, "bus": {}, "vram": {}}]}'


@pytest.fixture
def tools(tmp_path, monkeypatch):
    """The only programs there are, beside those of the system that scripts use."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("cat", "sleep", "yes"):
        found = next(path for path in ("/usr/bin", "/bin") if os.path.exists(f"{path}/{name}"))
        (folder / name).symlink_to(f"{found}/{name}")
    monkeypatch.setenv("PATH", str(folder))
    for name in ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ASCEND_RT_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    return folder


def test_without_tools_nothing_is_found_and_nothing_is_said(tools):
    found = find_cards()

    assert found.cards == () and found.warnings == () and not found.vendors and not found.unknown


def test_cards_of_two_vendors(tools):
    nvidia_smi(tools, range(2))
    a_tool(tools, "amd-smi", f"echo '{AMD}'")

    found = find_cards()

    assert [card.visible for card in found.cards] == [gpu_uuid(0), gpu_uuid(1), "GPU-0000000000000007"]
    assert found.vendors == {"nvidia", "amd"}


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo couldn\\'t communicate with the driver; exit 9", "nvidia-smi ended with 9: couldn't communicate"),
        ("echo nonsense", "nvidia-smi printed what cannot be read"),
        ("yes 0123456789", "nvidia-smi printed more than 1024 KiB"),
        ("kill -9 $$", "nvidia-smi ended with -9"),
    ],
)
def test_a_broken_tool_is_one_warning(tools, script, said):
    a_tool(tools, "nvidia-smi", script)

    found = find_cards()

    assert found.cards == () and found.unknown == {"nvidia"}
    (warning,) = found.warnings
    assert said in warning


def test_a_tool_that_hangs_is_killed_with_what_it_started(tools, monkeypatch):
    monkeypatch.setattr(vendor_tools, "MAX_TOOL_SECONDS", 0.2)
    a_tool(tools, "nvidia-smi", "sleep 1000 & sleep 1000")

    found = find_cards()

    assert found.warnings == ("nvidia accelerators are not used: nvidia-smi did not answer within 0.2 s",)


def test_a_tool_that_cannot_be_executed_is_one_warning(tools):
    a_tool(tools, "npu-smi", "").write_text("#!/does/not/exist\n")

    found = find_cards()

    assert found.unknown == {"ascend"} and "npu-smi cannot be run" in found.warnings[0]


def test_the_environment_of_the_agent_limits_its_cards(tools, monkeypatch):
    nvidia_smi(tools, range(4))

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", f"1,{gpu_uuid(3)[:12]}")
    assert [card.index for card in find_cards().cards] == [1, 3]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert find_cards().cards == ()


def test_nvml_is_asked_where_nvidia_smi_is_missing(tools, tmp_path, monkeypatch):
    library = tmp_path / "library"
    library.mkdir()
    (library / "pynvml.py").write_text(
        f"""
from types import SimpleNamespace as O
def nvmlInit(): pass
def nvmlDeviceGetCount(): return 1
def nvmlDeviceGetHandleByIndex(index): return index
def nvmlDeviceGetMemoryInfo(handle): return O(total=24 * 2**30)
def nvmlDeviceGetUUID(handle): return "{gpu_uuid(0)}"
def nvmlDeviceGetName(handle): return b"NVIDIA L4"
def nvmlDeviceGetPciInfo(handle): return O(busId=b"00000000:17:00.0")
"""
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(library), *filter(None, sys.path)]))
    monkeypatch.syspath_prepend(str(library))

    (card,) = find_cards().cards

    assert (card.visible, card.model, card.memory_bytes, card.bus) == (
        gpu_uuid(0), "NVIDIA L4", 24 * 2**30, "0000:17:00.0",
    )  # fmt: skip


def test_files_of_cards_are_told_from_those_that_control_them(tmp_path):
    for name in ("nvidia0", "nvidia12", "nvidiactl", "nvidia-uvm", "davinci3", "davinci_manager", "null"):
        (tmp_path / name).touch()
    (tmp_path / "dri").mkdir()
    (tmp_path / "dri" / "renderD128").touch()
    (tmp_path / "dri" / "by-path").mkdir()

    assert card_files(tmp_path) == ("davinci3", "dri/renderD128", "nvidia0", "nvidia12")
