"""Probes and hooks of pods that really run."""

from __future__ import annotations

import sys

from tests.system.agent.kit import PODS, a_pod
from volcano.api.meta import Key

SERVE = (
    "import http.server, sys\n"
    "class H(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        self.send_response(200 if self.path == '/healthy' else 500); self.end_headers()\n"
    "    def log_message(self, *a): pass\n"
    "http.server.HTTPServer((sys.argv[1], 8099), H).serve_forever()\n"
)


def ready(pod) -> bool:
    return any(each["type"] == "Ready" and each["status"] == "True" for each in pod["status"].get("conditions", ()))


async def test_a_pod_is_ready_when_its_probe_succeeds(machine):
    probe = {"exec": {"command": ["test", "-e", "/tmp/go"]}, "periodSeconds": 1}
    script = "echo up; sleep 0.5; touch /tmp/go; sleep 1000"
    await machine.create(a_pod("slow", "sh", "-c", script, container={"readinessProbe": probe}))
    pod = await machine.until_phase("slow", "Running")
    assert not ready(pod)

    await machine.until("slow", ready)


async def test_http_and_tcp_probes_ask_the_pods_own_address(machine):
    probes = {
        "readinessProbe": {"httpGet": {"path": "/healthy", "port": "web"}, "periodSeconds": 1},
        "startupProbe": {"tcpSocket": {"port": 8099}, "periodSeconds": 1, "failureThreshold": 20},
        "ports": [{"name": "web", "containerPort": 8099}],
        "env": [{"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
        "args": ["$(ADDRESS)"],
    }
    await machine.create(a_pod("web", sys.executable, "-c", SERVE, container=probes))

    await machine.until("web", ready)


async def test_a_container_that_fails_its_liveness_probe_is_started_again(machine):
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    pod = a_pod("sick", "sleep", "1000", container={"livenessProbe": probe}, restartPolicy="Always")
    await machine.create(pod)

    pod = await machine.until(
        "sick", lambda pod: pod["status"].get("containerStatuses", [{}])[0].get("restartCount", 0) >= 1
    )

    assert pod["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 143


async def test_hooks_run_after_the_start_and_before_the_stop(machine, tmp_path):
    marks = tmp_path / "marks"
    marks.mkdir()
    marks.chmod(0o777)  # pods are not root
    container = {
        "lifecycle": {
            "postStart": {"exec": {"command": ["sh", "-c", "echo after >> /marks/all"]}},
            "preStop": {"exec": {"command": ["sh", "-c", "echo before >> /marks/all"]}},
        },
        "volumeMounts": [{"name": "marks", "mountPath": "/marks"}],
    }
    volumes = [{"name": "marks", "hostPath": {"path": str(marks)}}]
    await machine.create(a_pod("hooked", "sleep", "1000", container=container, volumes=volumes))
    await machine.until_phase("hooked", "Running")
    assert (marks / "all").read_text() == "after\n"

    await machine.client.delete(PODS, Key("default", "hooked"))

    await machine.until_gone("hooked")
    assert (marks / "all").read_text() == "after\nbefore\n"
