"""A backend for miniwdl: each WDL task is a Volcano Job of one pod. docs/frameworks/wdl.md.

The backend starts this module as a program of its own, which submits the Job with kubectl and waits for its end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from WDL.runtime.backend.cli_subprocess import SubprocessBase

POLL_SECONDS = 0.5
FINISHED = ("Completed", "Failed", "Aborted", "Terminated")
JOBS = "jobs.batch.volcano.sh"


class VolcanoContainer(SubprocessBase):
    """Runs a task's command in a pod that sees the task's folder and its inputs."""

    @classmethod
    def global_init(cls, cfg, logger):
        pass

    @property
    def cli_name(self):
        return "volcano"

    def _pull(self, logger, cleanup):
        return self.runtime_values.get("docker", "ubuntu")  # what an image means is the cluster's matter

    def _run_invocation(self, logger, cleanup, image):
        work = os.path.join(self.container_dir, "work")
        job = job_of(self.run_id, image, self.prepare_mounts(), self.runtime_values, work)
        path = os.path.join(self.host_dir, "job.json")
        with open(path, "w") as file:
            json.dump(job, file)
        return [sys.executable, os.path.abspath(__file__), path]


def job_of(name, image, mounts, runtime, folder):
    volumes = [{"name": f"v{number}", "hostPath": {"path": host}} for number, (_, host, _) in enumerate(mounts)]
    paths = [
        {"name": f"v{number}", "mountPath": inside.rstrip("/"), "readOnly": not is_writable}
        for number, (inside, _, is_writable) in enumerate(mounts)
    ]
    requests = {"cpu": str(runtime.get("cpu", "100m")), "memory": str(runtime.get("memory_reservation", 64 * 2**20))}
    container = {
        "name": "task",
        "image": image,
        "workingDir": folder,
        "volumeMounts": paths,
        "resources": {"requests": requests},
    }
    # The folders of a run belong to the user who started it, and tasks write into them.
    user = {"runAsUser": os.geteuid(), "runAsGroup": os.getegid()}
    pod = {"restartPolicy": "Never", "containers": [container], "volumes": volumes, "securityContext": user}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"generateName": "".join(c if c.isalnum() else "-" for c in name.lower())[:50] + "-"},
        "spec": {
            "minAvailable": 1,
            "schedulerName": "volcano",
            "tasks": [{"name": "task", "replicas": 1, "template": {"spec": pod}}],
        },
    }


def kubectl(*words, text=None):
    return subprocess.run(["kubectl", *words], input=text, capture_output=True, text=True, check=True).stdout


def main():
    """Submit the Job in the file that is named first, with the command that follows; exit as its pod does."""
    with open(sys.argv[1]) as file:
        job = json.load(file)
    job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"] = sys.argv[2:]
    name = json.loads(kubectl("create", "-o", "json", "-f", "-", text=json.dumps(job)))["metadata"]["name"]
    print(f"Volcano Job {name}", flush=True)
    try:
        while True:
            phase = json.loads(kubectl("get", JOBS, name, "-o", "json")).get("status", {}).get("state", {}).get("phase")
            if phase in FINISHED:
                break
            time.sleep(POLL_SECONDS)
    except BaseException:
        kubectl("delete", JOBS, name)
        raise
    print(f"Volcano Job {name} {phase}")
    sys.exit(0 if phase == "Completed" else 1)


if __name__ == "__main__":
    main()
