# ruff: noqa: ASYNC110, ASYNC240
"""Pods really run: exit codes, messages, volumes, environment, restarts, deadlines, deletion."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests import needs
from tests.system.agent.kit import PODS, a_pod, terminated
from volcano.api.meta import Key
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt


async def test_a_pod_that_ends_well_succeeded(machine):
    await machine.create(a_pod("hello", "sh", "-c", "echo hello from $(hostname)"))

    pod = await machine.finished("hello")

    assert pod["status"]["phase"] == "Succeeded"
    assert terminated(pod)["exitCode"] == 0 and terminated(pod)["reason"] == "Completed"
    assert await machine.output("hello") == "hello from hello"
    assert pod["status"]["podIP"] and pod["status"]["hostIP"] and pod["status"]["startTime"]


async def test_a_pod_that_fails_says_how(machine):
    script = "echo out of luck > /dev/termination-log; exit 7"
    await machine.create(a_pod("unlucky", "sh", "-c", script))

    pod = await machine.finished("unlucky")

    assert pod["status"]["phase"] == "Failed"
    assert terminated(pod) | {"exitCode": 7, "reason": "Error", "message": "out of luck\n"} == terminated(pod)


async def test_a_program_that_is_not_there_is_a_start_error(machine):
    await machine.create(a_pod("typo", "no-such-program"))

    pod = await machine.finished("typo")

    assert terminated(pod)["reason"] == "StartError" and terminated(pod)["exitCode"] == 128
    assert "No such file or directory" in terminated(pod)["message"]


async def test_an_image_without_a_command_waits_with_a_clear_reason(machine):
    pod = a_pod("imageless")
    del pod["spec"]["containers"][0]["command"]
    await machine.create(pod)

    pod = await machine.until(
        "imageless",
        lambda pod: (
            "waiting" in pod["status"].get("containerStatuses", [{}])[0].get("state", {})
            and pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"] == "ErrImageNeverPull"
        ),
    )

    waiting = pod["status"]["containerStatuses"][0]["state"]["waiting"]
    assert "command" in waiting["message"] and "--images" in waiting["message"]
    assert pod["status"]["phase"] == "Pending"


async def test_the_logs_are_the_message_of_a_failure_that_wrote_none(machine):
    container = {"terminationMessagePolicy": "FallbackToLogsOnError"}
    await machine.create(a_pod("talker", "sh", "-c", "echo first; echo second >&2; exit 1", container=container))

    pod = await machine.finished("talker")

    assert sorted(terminated(pod)["message"].split("\n")) == ["first", "second"]


async def test_deleting_a_pod_asks_it_to_end_and_then_removes_it(machine):
    script = "trap 'echo asked; exit 0' TERM; echo ready; while true; do sleep 0.05; done"
    await machine.create(a_pod("polite", "sh", "-c", script))
    await machine.until_phase("polite", "Running")
    known = machine.agent.find("default", "polite")
    log = machine.runtime.log_file(ContainerAttempt(known.pod, "main", 0))
    while "ready" not in log.read_text():
        await asyncio.sleep(0.01)
    saved = os.open(log, os.O_RDONLY)

    await machine.client.delete(PODS, Key("default", "polite"))

    await machine.until_gone("polite")
    assert b"asked" in os.read(saved, 65536)
    os.close(saved)


async def test_a_pod_that_will_not_end_is_killed_with_everything_it_started(machine, tmp_path):
    mark = tmp_path / "alive"
    mark.mkdir()
    mark.chmod(0o777)  # pods are not root
    script = f"trap '' TERM; (trap '' TERM; while true; do date > {mark}/beat; sleep 0.05; done) & wait; sleep 1000"
    volumes = {
        "volumes": [{"name": "mark", "hostPath": {"path": str(mark)}}],
    }
    container = {"volumeMounts": [{"name": "mark", "mountPath": str(mark)}]}
    await machine.create(a_pod("stubborn", "sh", "-c", script, container=container, **volumes))
    await machine.until_phase("stubborn", "Running")
    while not (mark / "beat").exists():
        await asyncio.sleep(0.01)
    processes = machine.processes("stubborn")
    assert len(processes) > 2, "the container's shell and the loop in the background"

    await machine.client.delete(PODS, Key("default", "stubborn"), {"gracePeriodSeconds": 1})

    await machine.until_gone("stubborn")
    for pid in processes:
        await machine.until_no_process(pid)


async def test_volumes_are_where_the_pod_wants_them(machine):
    await machine.create(
        {
            "kind": "ConfigMap",
            "metadata": {"name": "settings", "namespace": "default"},
            "data": {"a.txt": "A", "b": "B"},
        },
        {"kind": "Secret", "metadata": {"name": "keys", "namespace": "default"}, "stringData": {"id": "s3cret"}},
    )
    volumes = [
        {"name": "config", "configMap": {"name": "settings", "items": [{"key": "a.txt", "path": "deep/a"}]}},
        {"name": "keys", "secret": {"secretName": "keys", "defaultMode": 0o400}},
        {"name": "about", "downwardAPI": {"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"name": "scratch", "emptyDir": {}},
        {"name": "all", "projected": {"sources": [{"configMap": {"name": "settings"}}, {"secret": {"name": "keys"}}]}},
    ]
    mounts = [
        {"name": "config", "mountPath": "/etc/settings", "readOnly": True},
        {"name": "keys", "mountPath": "/root/.keys"},
        {"name": "about", "mountPath": "/about"},
        {"name": "scratch", "mountPath": "/scratch"},
        {"name": "scratch", "mountPath": "/part", "subPath": "inner/part"},
        {"name": "all", "mountPath": "/all"},
    ]
    script = (
        "cat /etc/settings/deep/a; echo; cat /root/.keys/id; echo; stat -c %a /root/.keys/id; cat /about/name; echo;"
        "echo kept > /part/file; cat /scratch/inner/part/file; ls /all | sort | tr '\\n' ' '; echo;"
        "touch /etc/settings/x 2>/dev/null || echo read-only; grep -c reader /etc/hosts"
    )
    await machine.create(a_pod("reader", "sh", "-c", script, container={"volumeMounts": mounts}, volumes=volumes))

    await machine.until_phase("reader", "Succeeded")

    lines = (await machine.output("reader")).splitlines()
    assert lines == ["A", "s3cret", "400", "reader", "kept", "a.txt b id ", "read-only", "1"]
    assert not Path("/etc/settings").exists() and not Path("/about").exists() and not Path("/root/.keys").exists()


async def test_the_environment_is_what_the_pod_asks_for(machine):
    await machine.create(
        {"kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}, "data": {"COLOR": "blue"}}
    )
    env = [
        {"name": "GREETING", "value": "hello $(WHO) $(COLOR) $$(COLOR) $(NOBODY)"},
        {"name": "WHO", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "LATER", "value": "$(WHO)!"},
        {"name": "CPUS", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}},
        {"name": "SHADE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "COLOR"}}},
    ]
    container = {
        "env": env,
        "envFrom": [{"configMapRef": {"name": "settings"}}],
        "args": ['echo "$GREETING|$LATER|$CPUS|$SHADE|$(WHO)"; pwd'],
        "resources": {"limits": {"cpu": "1500m"}},
        "workingDir": "/usr",
    }
    await machine.create(a_pod("speaker", "sh", "-c", container=container))

    await machine.until_phase("speaker", "Succeeded")

    assert (await machine.output("speaker")).splitlines() == [
        "hello $(WHO) blue $(COLOR) $(NOBODY)|speaker!|2|blue|speaker",
        "/usr",
    ]


async def test_a_missing_config_map_is_waited_for(machine):
    volumes = [{"name": "late", "configMap": {"name": "late"}}]
    container = {"volumeMounts": [{"name": "late", "mountPath": "/late"}]}
    await machine.create(a_pod("patient", "cat", "/late/word", container=container, volumes=volumes))
    await machine.until_phase("patient", "Pending")

    await machine.create(
        {"kind": "ConfigMap", "metadata": {"name": "late", "namespace": "default"}, "data": {"word": "here"}}
    )

    await machine.until_phase("patient", "Succeeded")
    assert await machine.output("patient") == "here"


async def test_init_containers_run_first_and_a_sidecar_beside(machine):
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    inits = [
        {"name": "one", "image": "host", "command": ["sh", "-c", "echo one >> /shared/order"], "volumeMounts": mounts},
        {
            "name": "beside",
            "image": "host",
            "command": ["sh", "-c", "echo beside >> /shared/order; touch /shared/up; sleep 1000"],
            "restartPolicy": "Always",
            "volumeMounts": mounts,
        },
        {
            "name": "two",
            "image": "host",
            "command": ["sh", "-c", "until test -e /shared/up; do sleep 0.02; done; echo two >> /shared/order"],
            "volumeMounts": mounts,
        },
    ]
    pod = a_pod("staged", "cat", "/shared/order", container={"volumeMounts": mounts})
    pod["spec"] |= {"initContainers": inits, "volumes": [{"name": "shared", "emptyDir": {}}]}
    await machine.create(pod)

    pod = await machine.finished("staged")

    assert pod["status"]["phase"] == "Succeeded"
    assert (await machine.output("staged")).split() == ["one", "beside", "two"]
    assert pod["status"]["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0


async def test_a_failing_container_is_started_again(machine):
    mounts = [{"name": "shared", "mountPath": "/shared"}]
    script = "echo x >> /shared/tries; test $(wc -l < /shared/tries) = 2"
    await machine.create(
        a_pod("again", "sh", "-c", script, container={"volumeMounts": mounts}, restartPolicy="OnFailure",
              volumes=[{"name": "shared", "emptyDir": {}}])
    )  # fmt: skip

    pod = await machine.finished("again")

    status = pod["status"]["containerStatuses"][0]
    assert pod["status"]["phase"] == "Succeeded" and status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 1


async def test_a_pod_that_is_active_too_long_fails(machine):
    await machine.create(a_pod("slow", "sleep", "1000", activeDeadlineSeconds=1))

    pod = await machine.finished("slow")

    assert pod["status"]["reason"] == "DeadlineExceeded" and pod["status"]["phase"] == "Failed"


@needs.ROOT
async def test_a_container_over_its_memory_limit_is_killed_for_it(machine):
    script = "x=a; while true; do x=$x$x; done"
    container = {"resources": {"limits": {"memory": "32Mi"}}}
    await machine.create(a_pod("greedy", "sh", "-c", script, container=container))

    pod = await machine.finished("greedy")

    assert terminated(pod)["exitCode"] == 137 and terminated(pod)["reason"] == "OOMKilled"
