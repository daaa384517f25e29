"""Frameworks' ways of meeting, with real processes: four that all-reduce at MASTER_ADDR, and a TF_CONFIG that holds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.system.real_system import running_up, volcano_run

pytestmark = pytest.mark.timeout(240)

CONNECT = """
import json, os, socket, time

DEADLINE = time.monotonic() + 90

def retrying(attempt):
    while True:
        try:
            return attempt()
        except OSError:
            if time.monotonic() > DEADLINE:
                raise
            time.sleep(0.05)

def connect(host, port):
    return retrying(lambda: socket.create_connection((host, port), timeout=60))
"""

ALL_REDUCE = """
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
master, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
gradient = [rank + 1.0, 10.0 * rank]
if rank == 0:
    # All addresses, as torch does, where this pod has a network of its own.
    own = "" if os.environ["OWN_NETWORK"] else retrying(lambda: socket.gethostbyname(master))
    server = retrying(lambda: socket.create_server((own, port)))
    open(f"/meet/{os.environ['JOB']}", "w").close()
    while len(os.listdir("/meet")) < 2:  # both jobs listen on this port before either goes on
        assert time.monotonic() < DEADLINE
        time.sleep(0.02)
    peers = [server.accept()[0].makefile("rw") for _ in range(size - 1)]
    parts = [gradient] + [json.loads(peer.readline()) for peer in peers]
    total = [sum(column) for column in zip(*parts)]
    for peer in peers:
        peer.write(json.dumps(total) + "\\n")
        peer.flush()
else:
    stream = connect(master, port).makefile("rw")
    stream.write(json.dumps(gradient) + "\\n")
    stream.flush()
    total = json.loads(stream.readline())
print(f"{os.environ['JOB']} rank {rank} of {size}: {total}", flush=True)
"""

CHECK_CONFIG = """
import threading
config = json.loads(os.environ["TF_CONFIG"])
me, cluster = config["task"], config["cluster"]
others = [(role, index, place) for role in cluster for index, place in enumerate(cluster[role])
          if (role, index) != (me["type"], me["index"])]
host, port = cluster[me["type"]][me["index"]].split(":")
assert host.split(".")[0] == socket.gethostname() or not os.environ["OWN_NETWORK"], (host, socket.gethostname())
server = retrying(lambda: socket.create_server((socket.gethostbyname(host), int(port))))

def answer():
    for _ in others:
        server.accept()[0].sendall(json.dumps(me).encode() + b"\\n")

answering = threading.Thread(target=answer)
answering.start()
for role, index, place in others:
    host, port = place.split(":")
    found = json.loads(connect(host, int(port)).makefile().readline())
    assert found == {"type": role, "index": index}, (found, role, index)
answering.join()
print(f"{me['type']} {me['index']} met {len(others)} others", flush=True)
"""


def a_job(name: str, plugins: dict[str, list[str]], tasks: dict[str, int], program: str, **pod: Any) -> dict[str, Any]:
    own_network = "yes" if os.geteuid() == 0 else ""
    container = {
        "name": "main",
        "image": "python:3",
        "command": ["python3", "-u", "-c", CONNECT + program],
        "env": [{"name": "JOB", "value": name}, {"name": "OWN_NETWORK", "value": own_network}],
        "resources": {"requests": {"cpu": "20m", "memory": "16Mi"}},
        "volumeMounts": [{"name": volume["name"], "mountPath": "/meet"} for volume in pod.get("volumes", [])],
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container], **pod}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "minAvailable": sum(tasks.values()),
            "schedulerName": "volcano",
            "plugins": {**plugins, "svc": []},
            "tasks": [{"name": task, "replicas": count, "template": template} for task, count in tasks.items()],
        },
    }


def written(folder: Path, *documents: dict[str, Any]) -> Path:
    path = folder / "jobs.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    return path


def test_two_jobs_of_four_processes_all_reduce_on_the_same_port_at_once(tmp_path):
    meet = tmp_path / "meet"
    meet.mkdir()
    meet.chmod(0o777)  # pods are not root
    plugins = {"pytorch": ["--master=master", "--worker=worker", "--port=23456"]}
    volumes = [{"name": "meet", "hostPath": {"path": str(meet)}}]
    jobs = [a_job(name, plugins, {"master": 1, "worker": 3}, ALL_REDUCE, volumes=volumes) for name in ("left", "right")]

    ran = volcano_run(tmp_path, written(tmp_path, *jobs))

    assert ran.returncode == 0, ran.stdout + ran.stderr
    for name in ("left", "right"):
        for rank, pod in enumerate(["master-0", "worker-0", "worker-1", "worker-2"]):
            assert f"{name}-{pod} | {name} rank {rank} of 4: [10.0, 60.0]" in ran.stdout


def test_every_process_finds_the_others_where_its_tf_config_says(tmp_path):
    plugins = {"tensorflow": ["--ps=ps", "--worker=worker", "--port=2222"]}
    job = a_job("tf", plugins, {"ps": 2, "worker": 3}, CHECK_CONFIG)

    with running_up(tmp_path) as up:
        ran = volcano_run(tmp_path, written(tmp_path, job), "--data-dir", up.data)

        assert ran.returncode == 0, ran.stdout + ran.stderr
        said = {name: up.logs(name).strip() for name in up.pods()}
    assert said == {
        **{f"tf-ps-{index}": f"ps {index} met 4 others" for index in range(2)},
        **{f"tf-worker-{index}": f"worker {index} met 4 others" for index in range(3)},
    }
