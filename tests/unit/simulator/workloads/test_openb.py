"""Pods and nodes of the Alibaba GPU trace."""

from __future__ import annotations

from pathlib import Path

import pytest

from volcano.simulator.clusters import InvalidCluster
from volcano.simulator.comparison import PolicyComparison
from volcano.simulator.policies import shipped_policy
from volcano.simulator.workloads.openb import InvalidTrace, read_openb_nodes, read_openb_pods

PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,4000,1024,1,600,,LS,Running,0,100,0
p1,4000,1024,1,600,,LS,Running,10,110,10
p2,500,1024,2,1000,T4,LS,Running,20,120,30
p3,500,1024,1,1000,T4|P100,LS,Pending,30,130,
p4,many,1024,0,0,,BE,Running,40,140,40
p0,500,1024,0,0,,BE,Running,50,150,50
p5,500,1024,0,0,,BE,Running,60,50,60
"""
NODES = """sn,cpu_milli,memory_mib,gpu,model
n0,8000,8192,1,P100
n1,8000,8192,2,T4
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "trace.csv"
    path.write_text(text)
    return path


def test_each_pod_is_a_job_with_its_cpu_memory_and_gpus(tmp_path: Path) -> None:
    trace = read_openb_pods(write(tmp_path, PODS))

    jobs = {job.name: job for job in trace.jobs}
    assert dict(jobs["p0"].roles[0].requests) == {
        "cpu": "4000m",
        "memory": "1024Mi",
        "nvidia.com/gpu": "600m",
        "volcano.sh/vgpu-number": "1",
        "volcano.sh/vgpu-memory": "600",
    }
    two = dict(jobs["p2"].roles[0].requests)
    assert (two["nvidia.com/gpu"], two["volcano.sh/vgpu-number"], two["volcano.sh/vgpu-memory"]) == ("2", "2", "1000")
    assert jobs["p2"].roles[0].spec == {"nodeSelector": {"nvidia.com/gpu.product": "T4"}}
    assert (jobs["p2"].submit, jobs["p2"].run_time, jobs["p3"].run_time) == (20.0, 90.0, 100.0)
    assert trace.unreadable.named == [
        "line 6: cpu_milli is not a number of at least 0: 'many'",
        "line 7: p0 is already there",
        "line 8: deletion_time is before the pod was scheduled",
    ]


def test_a_slice_of_a_trace(tmp_path: Path) -> None:
    assert [job.name for job in read_openb_pods(write(tmp_path, PODS), first=1, count=2).jobs] == ["p1", "p2"]


def test_shares_and_models_of_gpus_are_kept_apart(tmp_path: Path) -> None:
    """Two shares of 0.6 do not fit a node with one GPU, and a pod runs only on a node with a model that it accepts."""
    nodes = read_openb_nodes(write(tmp_path, NODES))
    comparison = PolicyComparison(nodes, read_openb_pods(write(tmp_path, PODS)).jobs)

    comparison.run([shipped_policy("volcano-default")])

    outcomes = comparison.runs["volcano-default"].outcomes
    assert all(outcome.end is not None for outcome in outcomes.values())
    assert outcomes["p2"].nodes == ("n1",)
    assert outcomes["p3"].nodes in (("n0",), ("n1",))
    assert outcomes["p0"].nodes != outcomes["p1"].nodes or outcomes["p0"].nodes == ("n1",)


@pytest.mark.parametrize("text", ["", "name,cpu_milli\np0,1\n"])
def test_a_missing_column_is_an_error(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidTrace, match=r"lacks the columns .*memory_mib"):
        read_openb_pods(write(tmp_path, text))


@pytest.mark.parametrize(
    ("lines", "reason"),
    [("", "no nodes"), ("n0,x,1,0,\n", "line 2: cpu_milli"), ("n0,1,1,0,\nn0,1,1,0,\n", "line 3: n0 is already there")],
)
def test_a_node_list_that_cannot_be_used(tmp_path: Path, lines: str, reason: str) -> None:
    with pytest.raises(InvalidCluster, match=reason):
        read_openb_nodes(write(tmp_path, f"sn,cpu_milli,memory_mib,gpu,model\n{lines}"))
