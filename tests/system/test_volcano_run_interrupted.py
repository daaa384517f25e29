"""Ctrl-C in `volcano run`: once says what goes on, twice ends it; and what is followed besides Jobs."""

from __future__ import annotations

import signal
import subprocess
import threading

import pytest

from .real_system import DEADLINE, EXAMPLES, JOBS, VOLCANO, environment, running_up, volcano_run, wait_until

LONG = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: long}
spec:
  tasks:
    - name: t
      replicas: 1
      template:
        spec:
          restartPolicy: Never
          containers: [{name: c, image: "python:3", command: [sleep, "600"]}]
"""
CRON = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: CronJob
metadata: {name: soon}
spec:
  schedule: "@every 2s"
  jobTemplate:
    spec:
      tasks:
        - name: t
          replicas: 1
          template:
            spec:
              restartPolicy: Never
              containers: [{name: c, image: "python:3", command: [echo, "a run"]}]
"""


class Running:
    """A `volcano run` whose lines can be waited for."""

    def __init__(self, folder, *arguments):
        self.lines = []
        self.process = subprocess.Popen(
            [*VOLCANO, "run", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=environment(folder), cwd=folder,
        )  # fmt: skip
        threading.Thread(target=lambda: self.lines.extend(self.process.stdout), daemon=True).start()

    def until(self, text):
        wait_until(lambda: any(text in line for line in self.lines), f"{text} in {self.lines}")

    def press(self):
        self.process.send_signal(signal.SIGINT)


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "long.yaml"
    path.write_text(LONG)
    return path


def test_in_a_system_of_its_own_the_first_says_so_and_the_second_ends_it(tmp_path, manifest):
    running = Running(tmp_path, manifest)
    running.until("pod/long-t-0 Running")

    running.press()
    running.until("job long: still running. Ctrl-C again ends it")
    assert running.process.poll() is None
    running.press()

    assert running.process.wait(DEADLINE) == 130


def test_in_a_running_system_one_leaves_the_job_and_two_end_it(tmp_path, manifest):
    with running_up(tmp_path) as up:
        running = Running(tmp_path, manifest, "--data-dir", up.data)
        running.until("pod/long-t-0 Running")
        running.press()
        running.until("goes on in the running system")
        assert running.process.wait(DEADLINE) == 130
        assert up.phase("long") == "Running"

        up.api.delete(f"{JOBS}/long")
        wait_until(lambda: up.api.get(f"{JOBS}/long").status == 404 and not up.pods(), "the job is gone")
        running = Running(tmp_path, manifest, "--data-dir", up.data)
        running.until("pod/long-t-0 Running")
        running.press()
        running.until("goes on in the running system")
        running.press()
        assert running.process.wait(DEADLINE) == 130
        wait_until(lambda: up.api.get(f"{JOBS}/long").status == 404, "the job was deleted")


def test_a_flow_is_followed_to_its_end_and_a_cron_job_through_its_first_run(tmp_path):
    (tmp_path / "cron.yaml").write_text(CRON)

    flow = volcano_run(tmp_path, EXAMPLES / "jobflow-diamond.yaml")
    cron = volcano_run(tmp_path, tmp_path / "cron.yaml")

    assert flow.returncode == 0, flow.stdout + flow.stderr
    assert "jobflow/diamond Succeed" in flow.stdout, flow.stdout
    assert cron.returncode == 0, cron.stdout + cron.stderr
    assert "| a run" in cron.stdout and "Completed after" in cron.stdout
