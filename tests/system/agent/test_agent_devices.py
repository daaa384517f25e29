"""`volcano up` on a machine with cards, which a played nvidia-smi lists: pods get them, and never one twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.system.real_system import DEADLINE, JOBS, Up, environment, wait_until
from tests.vendor_tools import a_tool, gpu_uuid, nvidia_smi

pytestmark = pytest.mark.timeout(240)
NODES, SLICES = "/api/v1/nodes", "/apis/resource.k8s.io/v1/resourceslices"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


class UpWithTools(Up):
    """With a folder of its own in front of PATH."""

    @property
    def tools(self) -> Path:
        return self.folder / "tools"

    @property
    def environment(self) -> dict[str, str]:
        return environment(self.folder, PATH=f"{self.tools}:{os.environ['PATH']}")


@pytest.fixture
def machine(tmp_path):
    made: list[UpWithTools] = []

    def start(*options: str, cards: int = 4) -> UpWithTools:
        up = UpWithTools(tmp_path, "--dashboard", "off", "--node-cpu", "16", *options)
        made.append(up)
        nvidia_smi(up.tools, range(cards))
        up.start()
        return up

    yield start
    for up in made:
        up.clean_up()


def a_job(name: str, marks: Path, command: str, *, size: int, gpus: int = 1, **template: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", command],
        "volumeMounts": [{"name": "marks", "mountPath": "/marks"}],
        "resources": {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {},
        **template.pop("container", {}),
    }
    spec = {
        "restartPolicy": "Never",
        "containers": [container],
        "volumes": [{"name": "marks", "hostPath": {"path": str(marks)}}],
        **template,
    }
    tasks = [{"name": "t", "replicas": size, "minAvailable": 1, "template": {"spec": spec}}]
    return {"metadata": {"name": name}, "spec": {"minAvailable": 1, "tasks": tasks}}


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def a_folder(path: Path) -> Path:
    path.mkdir(mode=0o777)
    path.chmod(0o777)
    return path


# A card is a folder that only its holder can make: a second holder fails.
HOLD = 'for c in $(echo $CUDA_VISIBLE_DEVICES | tr , " "); do mkdir /marks/$c || exit 7; echo $c >> /marks/seen; done; '
RELEASE = '; for c in $(echo $CUDA_VISIBLE_DEVICES | tr , " "); do rmdir /marks/$c; done'


def test_many_short_pods_never_share_a_card(machine, tmp_path):
    up, marks = machine(), a_folder(tmp_path / "marks")
    (node,) = up.api.get(NODES).body["items"]
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert "4 x NVIDIA A100-SXM4-80GB" in node["metadata"]["annotations"]["agent.volcano.sh/devices"]

    up.api.create(JOBS, a_job("one", marks, HOLD + "sleep 0.1" + RELEASE, size=24))
    up.api.create(JOBS, a_job("two", marks, HOLD + "sleep 0.1" + RELEASE, size=6, gpus=2))
    up.api.create(JOBS, a_job("none", marks, 'test "$CUDA_VISIBLE_DEVICES" = "" -a "$NVIDIA_VISIBLE_DEVICES" = void',
                              size=1, gpus=0))  # fmt: skip

    for job in ("one", "two", "none"):
        assert up.until_phase(job, "Completed", "Failed") == "Completed"
    counted = Counter(lines(marks / "seen"))
    assert set(counted) == {gpu_uuid(index) for index in range(4)}
    assert sum(counted.values()) == 24 + 6 * 2


@pytest.mark.slow
def test_cards_stay_with_their_pods_when_the_system_is_killed(machine, tmp_path):
    up, marks = machine(), a_folder(tmp_path / "marks")
    wait = "while [ ! -e /marks/end ]; do sleep 0.05; done"
    up.api.create(JOBS, a_job("first", marks, HOLD + wait + RELEASE, size=3))
    wait_until(lambda: len(lines(marks / "seen")) == 3, "three hold a card")

    up.kill()
    up.start()
    up.api.create(JOBS, a_job("second", marks, HOLD + "sleep 0.1" + RELEASE, size=8))
    assert up.until_phase("second", "Completed", "Failed") == "Completed"
    late = Counter(lines(marks / "seen")[3:])
    assert len(late) == 1  # all on the card that was left, one after the other

    up.kill()
    for supervisor in up.supervisors:
        os.kill(supervisor, signal.SIGKILL)
    wait_until(lambda: not up.supervisors, "nothing of it is left")
    for card in marks.glob("GPU-*"):
        card.rmdir()  # of pods that were killed and could not
    up.start()
    up.api.create(JOBS, a_job("third", marks, HOLD + "sleep 0.1" + RELEASE, size=4, gpus=4))
    assert up.until_phase("third", "Completed", "Failed") == "Completed"


@pytest.mark.slow
def test_claims_get_their_cards_and_not_those_of_the_extended_resource(machine, tmp_path):
    up, marks = machine("--claim-devices", "2"), a_folder(tmp_path / "marks")
    (found,) = wait_until(lambda: up.api.get(SLICES).body["items"], "the slice")
    devices = {each["name"]: each["attributes"] for each in found["spec"]["devices"]}
    assert [each["uuid"]["string"] for each in devices.values()] == [gpu_uuid(2), gpu_uuid(3)]
    (node,) = up.api.get(NODES).body["items"]
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "2"

    template = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates"
    request = {"name": "gpu", "exactly": {"deviceClassName": "nvidia-gpu.volcano.sh"}}
    up.api.create(template, {"metadata": {"name": "one"}, "spec": {"spec": {"devices": {"requests": [request]}}}})
    claims = [{"name": "card", "resourceClaimTemplateName": "one"}]
    resources = {"resources": {"claims": [{"name": "card"}]}}
    up.api.create(JOBS, a_job("claims", marks, HOLD + "sleep 0.1" + RELEASE, size=6, gpus=0, container=resources,
                              resourceClaims=claims))  # fmt: skip
    up.api.create(JOBS, a_job("counted", marks, HOLD + "sleep 0.1" + RELEASE, size=6))

    for job in ("claims", "counted"):
        assert up.until_phase(job, "Completed", "Failed") == "Completed"
    seen = Counter(lines(marks / "seen"))
    assert seen[gpu_uuid(0)] + seen[gpu_uuid(1)] == 6
    assert seen[gpu_uuid(2)] + seen[gpu_uuid(3)] == 6


def test_a_stated_number_without_cards_is_said_to_be_a_pretence_and_a_broken_tool_stops_nothing(tmp_path):
    up = UpWithTools(tmp_path, "--dashboard", "off", "--node-resources", "nvidia.com/gpu=4")
    a_tool(up.tools, "nvidia-smi", "echo the driver is not loaded; exit 9")
    try:
        up.start()
        (node,) = up.api.get(NODES).body["items"]
    finally:
        up.clean_up()

    said = "".join(up.output)
    assert "nvidia-smi ended with 9: the driver is not loaded" in said
    assert "nvidia.com/gpu=4 is only what --node-resources states" in said
    assert "only what --node-resources states" in node["metadata"]["annotations"]["agent.volcano.sh/devices"]
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"


DEV = """
mkdir -p {0}/dev; mount -t tmpfs none {0}/dev; mkdir {0}/dev/shm {0}/dev/pts; mount --bind /dev/shm {0}/dev/shm
for n in null zero full random urandom tty; do cp -a /dev/$n {0}/dev/; done
for n in 0 1 2 3; do mknod -m 666 {0}/dev/nvidia$n c 1 5; done; mknod -m 666 {0}/dev/nvidiactl c 1 5
mount --move {0}/dev /dev; exec "$@"
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes device files and mounts them over /dev")
@pytest.mark.slow
def test_a_container_can_open_the_files_of_its_cards_and_no_others(tmp_path):
    class UpWithDevices(UpWithTools):
        @property
        def command(self) -> list[str]:
            script = DEV.format(self.folder)
            return ["unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", *super().command]

    marks = a_folder(tmp_path / "marks")
    up = UpWithDevices(tmp_path, "--dashboard", "off", "--node-cpu", "16")
    nvidia_smi(up.tools, range(4))
    look = "ls /dev | grep nvidia | xargs > /marks/$NAME; head -c 1 /dev/nvidiactl | wc -c >> /marks/$NAME"
    try:
        up.start()
        for name, gpus in (("two", 2), ("none", 0)):
            named = {"env": [{"name": "NAME", "value": name}]}
            up.api.create(JOBS, a_job(name, marks, look, size=1, gpus=gpus, container=named))
            assert up.until_phase(name, "Completed", "Failed") == "Completed"
    finally:
        up.clean_up()

    assert lines(marks / "two") == ["nvidia0", "nvidia1", "nvidiactl", "1"]
    assert lines(marks / "none") == ["nvidiactl", "1"]


def test_doctor_lists_the_cards(tmp_path):
    nvidia_smi(tmp_path / "tools", range(3))

    done = subprocess.run(
        [sys.executable, "-m", "volcano", "doctor", "--data-dir", str(tmp_path / "data")],
        capture_output=True, text=True, timeout=DEADLINE, check=False,
        env=environment(tmp_path, PATH=f"{tmp_path / 'tools'}:{os.environ['PATH']}"),
    )  # fmt: skip

    assert re.search(r"as a node: .*nvidia.com/gpu: 3 x NVIDIA A100-SXM4-80GB", done.stdout)
