"""Job plugins: every argument and every artefact of the reference."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from volcano.api.core import ConfigMap, Pod, Secret, Service
from volcano.api.jobs.plugins import JOB_PLUGINS
from volcano.api.meta import Key
from volcano.api.scheme import find_resource_type, resource_type
from volcano.controllers.job.plugins import PLUGINS
from volcano.testing.pure_jobs import JobWorld, a_job, a_task, policy

NETWORK_POLICY = find_resource_type("networking.k8s.io", "NetworkPolicy")
TWO = {
    "containers": [{"name": "main", "image": "x"}, {"name": "side", "image": "x"}],
    "initContainers": [{"name": "init", "image": "x"}],
}


def template(**spec: Any) -> dict[str, Any]:
    return {"spec": {**TWO, **spec}}


def started(*tasks: dict[str, Any], **more: Any) -> JobWorld:
    world = JobWorld(a_job(*tasks, **more))
    world.settle()
    return world.enqueue()


def spec_of(world: JobWorld, pod: str) -> dict[str, Any]:
    return world.raw(Pod, pod)["spec"]


def everything(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [*spec["containers"], *spec["initContainers"]]


def env(container: dict[str, Any]) -> dict[str, Any]:
    return {each["name"]: each.get("value", each.get("valueFrom")) for each in container.get("env", [])}


def exists(world: JobWorld, kind: Any, name: str) -> bool:
    row = kind if not isinstance(kind, type) else resource_type(kind)
    return (row, Key("default", name)) in world.objects


def test_every_plugin_of_the_table_is_there_and_no_other() -> None:
    assert set(PLUGINS) == set(JOB_PLUGINS)


# -- env ------------------------------------------------------------------------------------------------------------
def test_env_tells_each_container_its_index_and_the_size_of_its_task() -> None:
    world = started(a_task("t", 3, template=template()), plugins={"env": []})

    for container in everything(spec_of(world, "j-t-2")):
        assert [each["name"] for each in container["env"]] == [
            "VK_TASK_INDEX",
            "VC_TASK_INDEX",
            "VK_TASK_NUM",
            "VC_TASK_NUM",
        ]
        assert env(container) == {"VK_TASK_INDEX": "2", "VC_TASK_INDEX": "2", "VK_TASK_NUM": "3", "VC_TASK_NUM": "3"}
    assert world.job.status.controlled_resources == {"plugin-env": "env"}


def test_env_leaves_the_number_of_a_task_named_task_to_svc() -> None:
    world = started(a_task("task", 2), a_task("t", 3, template=template()), plugins={"env": [], "svc": []})

    container = everything(spec_of(world, "j-t-0"))[0]
    assert env(container)["VC_TASK_NUM"] == {"configMapKeyRef": {"name": "j-svc", "key": "VC_TASK_NUM"}}
    assert env(container)["VK_TASK_NUM"] == "3"


# -- svc ------------------------------------------------------------------------------------------------------------
def test_svc_lists_the_hosts_of_every_task() -> None:
    tasks = (
        a_task("mpi-worker", 2),
        a_task("ps", 0),
        a_task("Named", 3, template=template(hostname="h", subdomain="s")),
    )
    world = started(*tasks, plugins={"svc": []})

    assert world.raw(ConfigMap, "j-svc")["data"] == {
        "mpi_worker.host": "j-mpi-worker-0.j\nj-mpi-worker-1.j",
        "VC_MPI_WORKER_HOSTS": "j-mpi-worker-0.j,j-mpi-worker-1.j",
        "VC_MPI_WORKER_NUM": "2",
        "ps.host": "",
        "VC_PS_HOSTS": "",
        "VC_PS_NUM": "0",
        "Named.host": "h.s",
        "VC_NAMED_HOSTS": "h.s",
        "VC_NAMED_NUM": "1",
    }


def test_svc_makes_a_headless_service_and_a_wall_around_the_job() -> None:
    world = started(a_task(), plugins={"svc": []})
    labels = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "default"}

    service = world.raw(Service, "j")
    wall = world.objects[NETWORK_POLICY, Key("default", "j")]

    assert service["spec"] == {"clusterIP": "None", "selector": labels, "publishNotReadyAddresses": False}
    assert wall["spec"] == {
        "podSelector": {"matchLabels": labels},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"podSelector": {"matchLabels": labels}}]}],
    }
    for made in (service, wall, world.raw(ConfigMap, "j-svc")):
        assert made["metadata"]["ownerReferences"][0]["uid"] == "uid-j"
        assert made["metadata"]["ownerReferences"][0]["blockOwnerDeletion"] is True


def test_svc_gives_pods_names_hosts_and_a_file() -> None:
    world = started(a_task("task", 1, template=template()), a_task("b", 1), plugins={"svc": []})

    spec = spec_of(world, "j-task-0")

    assert (spec["hostname"], spec["subdomain"]) == ("j-task-0", "j")
    assert spec["volumes"] == [{"name": "j-svc", "configMap": {"name": "j-svc"}}]
    for container in everything(spec):
        assert container["volumeMounts"] == [{"name": "j-svc", "mountPath": "/etc/volcano"}]
        assert [each["name"] for each in container["env"]] == ["VC_TASK_HOSTS", "VC_TASK_NUM", "VC_B_HOSTS", "VC_B_NUM"]
        assert env(container)["VC_B_NUM"] == {"configMapKeyRef": {"name": "j-svc", "key": "VC_B_NUM"}}


def test_svc_leaves_names_that_the_template_gives() -> None:
    world = started(a_task("t", 1, template=template(hostname="h", subdomain="s")), plugins={"svc": []})

    assert (spec_of(world, "j-t-0")["hostname"], spec_of(world, "j-t-0")["subdomain"]) == ("h", "s")


def test_the_arguments_of_svc() -> None:
    arguments = ["--publish-not-ready-addresses=true", "--disable-network-policy=true", "--inject-hosts-env=false"]
    world = started(a_task("t", 1, template=template()), plugins={"svc": arguments})

    assert world.raw(Service, "j")["spec"]["publishNotReadyAddresses"] is True
    assert not exists(world, NETWORK_POLICY, "j")
    assert all("env" not in container for container in everything(spec_of(world, "j-t-0")))


def test_svc_hosts_follow_the_scale_up_down_to_nothing_and_back() -> None:
    world = started(a_task("w", 2, minAvailable=0), minAvailable=0, plugins={"svc": []})
    world.run().wait()

    seen = []
    for replicas in (3, 1, 0, 2):
        world.scale(w=replicas).wait()
        seen.append(world.raw(ConfigMap, "j-svc")["data"]["VC_W_HOSTS"])

    assert seen == ["j-w-0.j,j-w-1.j,j-w-2.j", "j-w-0.j", "", "j-w-0.j,j-w-1.j"]


# -- ssh ------------------------------------------------------------------------------------------------------------
def secret_data(world: JobWorld) -> dict[str, str]:
    return {name: base64.b64decode(value).decode() for name, value in world.raw(Secret, "j-ssh")["data"].items()}


def test_ssh_makes_a_key_pair_that_ssh_understands(tmp_path: Path) -> None:
    world = started(a_task(), plugins={"ssh": []})
    data = secret_data(world)
    key = tmp_path / "id_rsa"
    key.write_text(data["id_rsa"])
    key.chmod(0o600)

    assert set(data) == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}
    assert data["id_rsa"].startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    assert data["id_rsa.pub"].startswith("ssh-rsa ") and data["id_rsa.pub"].endswith("\n")
    assert len(data["id_rsa.pub"].split()) == 2
    assert data["authorized_keys"] == data["id_rsa.pub"]
    try:
        derived = subprocess.run(
            ["ssh-keygen", "-y", "-f", key], capture_output=True, text=True, timeout=30, check=True
        )
    except FileNotFoundError:
        return
    assert derived.stdout.split()[:2] == data["id_rsa.pub"].split()


def test_the_ssh_config_names_every_host() -> None:
    tasks = (a_task("a", 2), a_task("b", 3, template=template(hostname="h")))
    world = started(*tasks, plugins={"ssh": ["--ssh-port=2222"]})

    assert secret_data(world)["config"] == (
        "StrictHostKeyChecking no\nUserKnownHostsFile /dev/null\n"
        "Host j-a-0\n  HostName j-a-0.j\n  Port 2222\n"
        "Host j-a-1\n  HostName j-a-1.j\n  Port 2222\n"
        "Host h\n  HostName h.j\n  Port 2222\n"
    )


@pytest.mark.parametrize("port", ["0", "-1", "65536"])
def test_a_port_that_is_none_becomes_22(port: str) -> None:
    world = started(a_task(), plugins={"ssh": [f"--ssh-port={port}"]})

    assert "  Port 22\n" in secret_data(world)["config"]


def test_ssh_uses_keys_that_are_given() -> None:
    world = started(a_task(), plugins={"ssh": ["--ssh-private-key=private", "--ssh-public-key=public"]})

    data = secret_data(world)
    assert (data["id_rsa"], data["id_rsa.pub"], data["authorized_keys"]) == ("private", "public", "public")


@pytest.mark.parametrize(
    ("arguments", "path", "mode"),
    [
        ([], "/root/.ssh", 0o600),
        (["--no-root"], "/root/.ssh", 0o600),
        (["--ssh-key-file-path=/home/me/.ssh"], "/home/me/.ssh", 0o644),
    ],
)
def test_ssh_mounts_the_keys(arguments: list[str], path: str, mode: int) -> None:
    world = started(a_task("t", 1, template=template()), plugins={"ssh": arguments})

    spec = spec_of(world, "j-t-0")
    files = ("id_rsa", "id_rsa.pub", "authorized_keys", "config")
    items = [{"key": name, "path": f".ssh/{name}"} for name in files]
    assert spec["volumes"] == [
        {"name": "j-ssh", "secret": {"secretName": "j-ssh", "items": items, "defaultMode": mode}}
    ]
    for container in everything(spec):
        assert container["volumeMounts"] == [{"name": "j-ssh", "mountPath": path, "subPath": ".ssh"}]


def test_a_targeted_restart_keeps_the_key_and_a_full_one_makes_another() -> None:
    rules = [policy("RestartPod", exitCode=1), policy("RestartJob", exitCode=2)]
    world = started(a_task(replicas=2), plugins={"ssh": []}, policies=rules)
    world.run()
    first = secret_data(world)["id_rsa"]

    world.fail("j-worker-0", exit_code=1)
    second = secret_data(world)["id_rsa"]
    world.enqueue().run()
    world.fail("j-worker-0", exit_code=2)
    world.enqueue().run()
    third = secret_data(world)["id_rsa"]

    assert world.job.status.retry_count == 2
    assert first == second != third


# -- tensorflow -------------------------------------------------------------------------------------------------------
def test_tensorflow_describes_the_cluster() -> None:
    tasks = (a_task("ps", 2), a_task("worker", 1, template=template()), a_task("other", 1))
    world = started(*tasks, plugins={"tensorflow": ["--port=3333"]})

    spec = spec_of(world, "j-worker-0")

    expected = '{"cluster":{"ps":["j-ps-0.j:3333","j-ps-1.j:3333"],"worker":["j-worker-0.j:3333"]},"task":{"type":"worker","index":0}}'
    assert [env(container) for container in spec["containers"]] == [{"TF_CONFIG": expected}] * 2
    assert "env" not in spec["initContainers"][0]
    assert json.loads(env(spec_of(world, "j-other-0")["containers"][0])["TF_CONFIG"])["task"] == {
        "type": "other",
        "index": 0,
    }


def test_tensorflow_roles_may_have_other_task_names() -> None:
    tasks = (a_task("p", 1), a_task("w", 1), a_task("c", 1), a_task("e", 2))
    world = started(*tasks, plugins={"tensorflow": ["--ps=p", "--worker=w", "--chief=c", "--evaluator=e"]})

    config = json.loads(env(spec_of(world, "j-e-1")["containers"][0])["TF_CONFIG"])

    assert list(config["cluster"]) == ["ps", "worker", "chief", "evaluator"]
    assert config["cluster"]["evaluator"] == ["j-e-0.j:2222", "j-e-1.j:2222"]
    assert config["task"] == {"type": "evaluator", "index": 1}


def test_tensorflow_repeats_the_host_name_of_a_template() -> None:
    world = started(a_task("worker", 2, template=template(hostname="h")), plugins={"tensorflow": []})

    config = json.loads(env(spec_of(world, "j-worker-1")["containers"][0])["TF_CONFIG"])
    assert config["cluster"] == {"worker": ["h.j:2222", "h.j:2222"]}


def test_tensorflow_leaves_a_single_pod_alone() -> None:
    world = started(a_task("worker", 1), plugins={"tensorflow": []})

    assert "env" not in spec_of(world, "j-worker-0")["containers"][0]


# -- pytorch ----------------------------------------------------------------------------------------------------------
def test_pytorch_tells_master_and_workers_their_ranks() -> None:
    tasks = (a_task("master", 1, template=template()), a_task("worker", 2), a_task("other", 1))
    world = started(*tasks, plugins={"pytorch": []})
    shared = {"MASTER_ADDR": "j-master-0.j", "MASTER_PORT": "23456", "WORLD_SIZE": "3"}

    master = spec_of(world, "j-master-0")

    for container in master["containers"]:
        assert env(container) == {**shared, "RANK": "0"}
        assert list(env(container)) == ["MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK"]
        assert container["ports"] == [{"name": "pytorchjob-port", "containerPort": 23456, "protocol": "TCP"}]
    assert "env" not in master["initContainers"][0]
    assert env(spec_of(world, "j-worker-1")["containers"][0]) == {**shared, "RANK": "2"}
    assert env(spec_of(world, "j-other-0")["containers"][0]) == shared


def test_pytorch_opens_no_port_that_is_open_already_and_takes_other_names() -> None:
    boxed = {"spec": {"containers": [{"name": "c", "ports": [{"containerPort": 99}]}]}}
    arguments = ["--master=m", "--worker=w", "--port=99"]
    world = started(a_task("m", 1, template=boxed), a_task("w", 1), plugins={"pytorch": arguments})

    assert spec_of(world, "j-m-0")["containers"][0]["ports"] == [{"containerPort": 99}]
    assert env(spec_of(world, "j-w-0")["containers"][0])["RANK"] == "1"


def test_pytorch_without_a_master_does_nothing() -> None:
    world = started(a_task("worker", 2), plugins={"pytorch": []})

    assert "env" not in spec_of(world, "j-worker-0")["containers"][0]


def test_pytorch_workers_wait_for_the_master_on_request() -> None:
    arguments = ["--wait-master-enabled=true", "--wait-master-timeout=77", "--wait-master-image=alpine"]
    world = started(a_task("master", 1), a_task("worker", 1, template=template()), plugins={"pytorch": arguments})

    waiter = spec_of(world, "j-worker-0")["initContainers"][-1]

    assert (waiter["name"], waiter["image"], waiter["command"][:2]) == ("wait-for-master", "alpine", ["sh", "-c"])
    assert all(
        text in waiter["command"][2]
        for text in ("j-master-0.j", "23456", "77", "nc -z", "/dev/tcp", "sleep 2", "exit 1")
    )
    assert "initContainers" not in spec_of(world, "j-master-0")
    subprocess.run(["sh", "-n", "-c", waiter["command"][2]], check=True, timeout=10)


def test_a_template_that_waits_by_itself_is_left_alone() -> None:
    own = template(initContainers=[{"name": "wait-for-master", "image": "mine"}])
    world = started(
        a_task("master", 1), a_task("worker", 1, template=own), plugins={"pytorch": ["--wait-master-enabled"]}
    )

    assert spec_of(world, "j-worker-0")["initContainers"] == [{"name": "wait-for-master", "image": "mine"}]


# -- mpi --------------------------------------------------------------------------------------------------------------
def test_mpi_tells_the_master_its_workers_and_opens_the_port() -> None:
    tasks = (a_task("master", 1, template=template()), a_task("worker", 2, template=template()))
    world = started(*tasks, plugins={"mpi": ["--port=2022"]})

    for container in everything(spec_of(world, "j-master-0")):
        assert env(container) == {"MPI_HOST": "j-worker-0.j,j-worker-1.j"}
        assert container["ports"] == [{"name": "mpijob-port", "containerPort": 2022, "protocol": "TCP"}]
    for container in everything(spec_of(world, "j-worker-0")):
        assert "env" not in container
        assert container["ports"][0]["containerPort"] == 2022


def test_mpi_with_named_tasks_and_a_host_name_in_the_template() -> None:
    tasks = (a_task("mpimaster", 1), a_task("mpiworker", 3, template=template(hostname="h")))
    world = started(*tasks, plugins={"mpi": ["--master=mpimaster", "--worker=mpiworker", "--port=22"]})

    assert env(spec_of(world, "j-mpimaster-0")["containers"][0]) == {"MPI_HOST": "h.j"}


def test_mpi_master_without_workers_is_left_alone() -> None:
    world = started(a_task("master", 1), plugins={"mpi": []})

    assert "ports" not in spec_of(world, "j-master-0")["containers"][0]


def test_mpi_with_no_worker_replicas_has_no_hosts() -> None:
    world = started(a_task("master", 1), a_task("worker", 0), plugins={"mpi": []})

    assert env(spec_of(world, "j-master-0")["containers"][0]) == {"MPI_HOST": ""}


# -- ray --------------------------------------------------------------------------------------------------------------
def ray_template(name: str) -> dict[str, Any]:
    return {
        "spec": {"containers": [{"name": name, "command": ["x"], "args": ["kept"]}, {"name": "side", "command": ["y"]}]}
    }


def test_ray_starts_a_head_and_workers_that_join_it() -> None:
    tasks = (
        a_task("head", 1, template=ray_template("ray")),
        a_task("worker", 1, template=ray_template("ray")),
        a_task("other", 1),
    )
    arguments = ["--port=2345", "--headContainer=ray", "--workerContainer=ray"]
    world = started(*tasks, plugins={"ray": arguments})

    head, side = spec_of(world, "j-head-0")["containers"]
    worker = spec_of(world, "j-worker-0")["containers"][0]

    assert head["command"] == [
        "sh",
        "-c",
        "ray start --head --block --dashboard-host=0.0.0.0 --port=2345 --dashboard-port=8265 --ray-client-server-port=10001",
    ]
    assert head["args"] == ["kept"]
    assert [(port["name"], port["containerPort"]) for port in head["ports"]] == [
        ("gcs", 2345),
        ("dashboard", 8265),
        ("client-server", 10001),
    ]
    assert side == {"name": "side", "command": ["y"]}
    assert worker["command"] == ["sh", "-c", "ray start --block --address=j-head-0.j:2345"]
    assert "ports" not in worker
    assert spec_of(world, "j-other-0")["containers"][0]["command"] == ["true"]


def test_ray_puts_a_service_in_front_of_the_head() -> None:
    world = started(a_task("h", 1), plugins={"ray": ["--head=h", "--dashboardPort=80", "--clientPort=81"]})

    spec = world.raw(Service, "j-head-svc")["spec"]

    labels = {"volcano.sh/job-name": "j", "volcano.sh/job-namespace": "default", "volcano.sh/task-spec": "h"}
    assert spec["selector"] == labels
    assert spec["ports"] == [
        {"name": "gcs", "port": 6379, "targetPort": "gcs", "protocol": "TCP"},
        {"name": "dashboard", "port": 80, "targetPort": "dashboard", "protocol": "TCP"},
        {"name": "client-server", "port": 81, "targetPort": "client-server", "protocol": "TCP"},
    ]
    assert "clusterIP" not in spec


# -- hcclrank -----------------------------------------------------------------------------------------------------------
def ranks(world: JobWorld) -> dict[str, str | None]:
    return {pod.name: pod.annotations.get("hccl/rankIndex") for pod in world.all(Pod)}


def test_hcclrank_counts_masters_first_and_then_workers() -> None:
    world = started(a_task("master", 2), a_task("worker", 2), a_task("other", 1), plugins={"hcclrank": []})

    assert ranks(world) == {
        "j-master-0": "0",
        "j-master-1": "1",
        "j-worker-0": "2",
        "j-worker-1": "3",
        "j-other-0": None,
    }
    assert world.job.status.controlled_resources == {}


def test_hcclrank_takes_a_rank_that_is_given() -> None:
    noted = {"metadata": {"annotations": {"hccl/rankIndex": "7"}}, "spec": {"containers": [{"name": "c"}]}}
    declared = {"spec": {"containers": [{"name": "c"}, {"name": "d", "env": [{"name": "RANK", "value": "9"}]}]}}
    world = started(
        a_task("master", 1, template=noted), a_task("worker", 1, template=declared), plugins={"hcclrank": []}
    )

    assert ranks(world) == {"j-master-0": "7", "j-worker-0": "9"}


def test_hcclrank_agrees_with_pytorch() -> None:
    world = started(
        a_task("m", 1),
        a_task("w", 2),
        plugins={"pytorch": ["--master=m", "--worker=w"], "hcclrank": ["--master=m", "--worker=w"]},
    )

    assert ranks(world) == {"j-m-0": "0", "j-w-0": "1", "j-w-1": "2"}


# -- cleaning up ----------------------------------------------------------------------------------------------------
ALL = {"svc": [], "ssh": [], "ray": [], "env": []}
HEAD = ("head", 1)


def made(world: JobWorld) -> set[str]:
    return {
        f"{row.kind}/{key.name}"
        for row, key in world.objects
        if row.kind in ("ConfigMap", "Service", "NetworkPolicy", "Secret")
    }


EVERYTHING = {"ConfigMap/j-svc", "Service/j", "NetworkPolicy/j", "Secret/j-ssh", "Service/j-head-svc"}


@pytest.mark.parametrize("action", ["AbortJob", "TerminateJob", "CompleteJob"])
def test_objects_of_plugins_go_when_the_job_ends(action: str) -> None:
    world = started(a_task(*HEAD), plugins=ALL)
    world.run()
    before = made(world)

    world.command(action)

    assert before == EVERYTHING
    assert made(world) == set()
    assert not [key for key in world.job.status.controlled_resources if key.startswith("plugin-")]


@pytest.mark.parametrize("outcome", ["succeed", "fail"])
def test_objects_of_plugins_go_when_the_pods_have_finished(outcome: str) -> None:
    world = started(a_task(*HEAD), plugins=ALL)
    world.run()

    getattr(world, outcome)("j-head-0")

    assert made(world) == set()


def test_objects_of_plugins_come_back_after_a_restart() -> None:
    world = started(a_task(*HEAD), plugins=ALL)
    world.run()

    world.command("RestartJob")
    world.enqueue().run()

    assert made(world) == EVERYTHING
    assert world.phase == "Running"


def test_objects_of_plugins_come_back_after_a_resume() -> None:
    world = started(a_task(*HEAD), plugins=ALL)
    world.run().command("AbortJob")

    world.command("ResumeJob")
    world.enqueue().run()

    assert made(world) == EVERYTHING


def test_a_lost_pod_brings_lost_objects_back_with_it() -> None:
    world = started(a_task(*HEAD), plugins=ALL)
    world.run()

    world.delete(ConfigMap, "j-svc")
    world.evict("j-head-0")

    assert made(world) == EVERYTHING
