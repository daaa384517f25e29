"""A change of the scheduler's ConfigMap: taken up or refused, and where that is told."""

from __future__ import annotations

import subprocess

import yaml

from volcano.cli.programs import run_program
from volcano.scheduler.service.shipped_configuration import DEFAULT_CONFIGURATION

from .real_system import VOLCANO, running_up, wait_until

CONFIGMAP = "/api/v1/namespaces/volcano-system/configmaps/volcano-scheduler-configmap"
EVENTS = "/api/v1/namespaces/volcano-system/events"
METRICS = "/api/v1/namespaces/volcano-system/services/volcano-scheduler:metrics/proxy/metrics"
BAD = "actions: enqueue, alocate\n"


def test_a_change_is_told_in_events_status_and_metrics(tmp_path, capsys):
    with running_up(tmp_path, "--ephemeral", "--simulated-nodes", "1") as up:
        api, kubeconfig = up.api, str(up.data / "kubeconfig")

        def status():
            code = run_program("vcctl", ["scheduler", "status", "--kubeconfig", kubeconfig])
            return code, capsys.readouterr().out

        def events():
            return {each["reason"] for each in api.get(EVENTS).body["items"]}

        code, text = status()
        assert (
            code == 0 and "actions      enqueue, allocate, backfill" in text and "volcano-scheduler-configmap" in text
        )

        api.merge(CONFIGMAP, {"data": {"volcano-scheduler.conf": BAD}})
        wait_until(lambda: "ConfigurationRefused" in events(), "the refusal is an event")
        code, text = status()
        assert code == 1 and "REFUSED" in text and "alocate" in text
        assert "volcano_configuration_refused 1.0" in api.get(METRICS).raw.decode()

        api.merge(CONFIGMAP, {"data": {"volcano-scheduler.conf": "# again\n" + DEFAULT_CONFIGURATION}})
        wait_until(lambda: "ConfigurationTaken" in events(), "the change is an event")
        assert status()[0] == 0
        assert "volcano_configuration_refused 0.0" in api.get(METRICS).raw.decode()


def test_check_conf_reads_a_configmap(tmp_path):
    def check(text):
        path = tmp_path / "map.yaml"
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}
        path.write_text(yaml.safe_dump({**body, "data": {"volcano-scheduler.conf": text}}))
        done = subprocess.run(
            [*VOLCANO, "scheduler", "--check-conf", str(path)], capture_output=True, text=True, timeout=60
        )
        return done.returncode, done.stdout + done.stderr

    code, said = check(DEFAULT_CONFIGURATION)
    assert "actions enqueue, allocate, backfill" in said, said
    code, said = check(BAD)
    assert code != 0 and "alocate" in said
