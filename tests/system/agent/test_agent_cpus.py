"""`volcano up` pins pods: from the exported topology through the scheduler to what the kernel says in the process."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cpu_trees import as_folder
from tests.system.ordinary_user import ordinary_user, running_user_up
from tests.system.real_system import JOBS, Up, running_up, wait_until
from volcano.embedded.agent.processes.cgroups import Cgroups

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU cannot be pinned and shared"),
]
NODES, TOPOLOGIES = "/api/v1/nodes", "/apis/nodeinfo.volcano.sh/v1alpha1/numatopologies"
ALLOWED = "grep Cpus_allowed_list /proc/self/status | cut -f2"
CONFIGURATION = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}]
- plugins: [{name: predicates}, {name: nodeorder}, {name: numa-aware}]
"""


def two_numa_nodes(folder: Path) -> tuple[Path, int, int]:
    """Two CPUs of this machine, each as a NUMA node of its own."""
    first, second, *_ = sorted(os.sched_getaffinity(0))
    tree = {"cpu/online": f"{first},{second}", "node/online": "0-1"}
    for node, cpu in enumerate((first, second)):
        tree[f"cpu/cpu{cpu}/topology/core_id"] = "0"
        tree[f"cpu/cpu{cpu}/topology/physical_package_id"] = str(node)
        tree[f"node/node{node}/cpulist"] = str(cpu)
    return as_folder(tree, folder), first, second


def a_job(name: str, marks: Path, command: str, *, pinned: bool, policy: str = "") -> dict[str, Any]:
    amounts = {"cpu": "1" if pinned else "100m", "memory": "64Mi"}
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", command],
        "resources": {"limits": amounts, "requests": amounts},
        "volumeMounts": [{"name": "marks", "mountPath": "/marks"}],
    }
    volumes = [{"name": "marks", "hostPath": {"path": str(marks)}}]
    template = {"spec": {"restartPolicy": "Never", "containers": [container], "volumes": volumes}}
    task = {"name": "t", "replicas": 1, "template": template, **({"topologyPolicy": policy} if policy else {})}
    return {"metadata": {"name": name}, "spec": {"minAvailable": 1, "tasks": [task]}}


def lines(path: Path) -> list[str]:
    return path.read_text().split() if path.exists() else []


def topology(up: Up) -> Any:
    (found,) = up.api.get(TOPOLOGIES).body["items"]
    return found["spec"]


def story(folder: Path, start: Callable[..., Any], how: str) -> None:
    """A pinned job, one that shares, one that waits for the pinned one's CPU, and a kill in between."""
    tree, first, second = two_numa_nodes(folder / "tree")
    marks, configuration = folder / "marks", folder / "scheduler.conf"
    marks.mkdir()
    marks.chmod(0o777)  # pods are not root
    marks.chmod(0o777)
    configuration.write_text(CONFIGURATION)
    options = ["--dashboard", "off", "--node-cpu", "8", "--scheduler-conf", str(configuration)]
    options += ["--cpu-manager-policy", "static", "--topology-manager-policy", "single-numa-node"]
    options += ["--system-reserved", "cpu=500m", "--device-path", str(tree)]
    watch = f"while [ ! -e /marks/stop ]; do {ALLOWED} > /marks/.now; mv /marks/.now /marks/shared; sleep 0.05; done"
    hold = f"{ALLOWED} > /marks/NAME; while [ ! -e /marks/end-NAME ]; do sleep 0.05; done"
    with start(*options) as up:
        wait_until(lambda: up.api.get(TOPOLOGIES).body["items"], "the topology is published")
        assert topology(up)["policies"]["TopologyManagerPolicy"] == "single-numa-node"
        assert topology(up)["numares"]["cpu"]["capacity"] == 2
        (node,) = up.api.get(NODES).body["items"]
        assert node["status"]["allocatable"]["cpu"] == "7500m"
        assert f"1 of 2 CPUs can be pods' own, by {how}" in node["metadata"]["annotations"]["agent.volcano.sh/cpus"]

        up.api.create(JOBS, a_job("shared", marks, watch, pinned=False))
        both = f"{first}-{second}" if second == first + 1 else f"{first},{second}"
        wait_until(lambda: lines(marks / "shared") == [both], "it runs on both CPUs")

        for name in ("one", "two"):
            body = a_job(name, marks, hold.replace("NAME", name), pinned=True, policy="single-numa-node")
            up.api.create(JOBS, body)
            wait_until(lambda: lines(marks / "one"), "the first is pinned")
        assert lines(marks / "one") == [str(second)]  # the first CPU is reserved
        wait_until(lambda: lines(marks / "shared") == [str(first)], "the others keep off")
        wait_until(lambda: topology(up).get("podAllocations"), "it is reported")
        assert topology(up)["numares"]["cpu"]["allocatable"] == str(first)

        up.kill()
        up.start()
        wait_until(lambda: up.phase("two") in ("Pending", "Inqueue"), "the second waits")
        assert not (marks / "two").exists()
        assert lines(marks / "shared") == [str(first)]

        (marks / "end-one").touch()
        wait_until(lambda: lines(marks / "two") == [str(second)], "the second got the same CPU after the first")
        (marks / "end-two").touch()
        wait_until(lambda: lines(marks / "shared") == [both], "all is shared again")
        (marks / "stop").touch()
        for job in ("one", "two", "shared"):
            assert up.until_phase(job, "Completed", "Failed") == "Completed"
        wait_until(lambda: "podAllocations" not in topology(up), "nothing is reported any more")


@pytest.mark.slow
def test_a_job_is_pinned_where_the_scheduler_saw_room_and_others_keep_off(tmp_path):
    groups = Cgroups("volcano-test-cpusets")
    groups.open(cpusets=True)
    groups.close()

    story(tmp_path, partial(running_up, tmp_path), "cpusets" if groups.has_cpusets else "the affinity")


@pytest.mark.slow
def test_pods_of_an_ordinary_user_are_pinned_by_their_affinity():
    with ordinary_user() as user:
        story(user.folder, partial(running_user_up, user), "the affinity")


def test_by_default_the_real_machine_is_exported_and_nothing_is_pinned(tmp_path):
    with running_up(tmp_path, "--dashboard", "off") as up:
        wait_until(lambda: up.api.get(TOPOLOGIES).body["items"], "the topology is published")
        spec = topology(up)
        (node,) = up.api.get(NODES).body["items"]

    assert spec["policies"] == {"CPUManagerPolicy": "none", "TopologyManagerPolicy": "none"}
    assert set(spec["cpuDetail"]) == {str(cpu) for cpu in os.sched_getaffinity(0)}
    assert node["metadata"]["annotations"]["agent.volcano.sh/cpus"] == "all pods share all CPUs"
