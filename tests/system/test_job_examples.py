"""The framework examples live their whole life: admission, decisions, and their scripts as processes of this machine.

The node here is a small one: names are loopback addresses, files of volumes lie in a temporary folder. The real agent
is tried in the system tests; this shows that what pods are given is what the frameworks look for.
"""

from __future__ import annotations

import base64
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from volcano.admission.chain import AdmissionChain
from volcano.admission.review import CREATE, Attributes, Settings
from volcano.api.batch import Job
from volcano.api.core import ConfigMap, Pod, Secret
from volcano.api.decode import decode_object
from volcano.api.manifests import load_documents
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.machinery.world import frozen_world
from volcano.testing.pure_jobs import JobWorld, a_queue

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("tensorflow", "pytorch", "mpi", "ray", "spark-like", "horovod", "mindspore", "paddlepaddle", "array", "elastic")
DEADLINE = 90

NODE = '''
import builtins, os, socket
_addresses = dict(pair.split("=") for pair in os.environ["TEST_NAMES"].split())
_files = dict(pair.split("=") for pair in os.environ["TEST_FILES"].split())
_open, _stat, _connect = builtins.open, os.stat, socket.create_connection

def _path(path):
    for mounted, folder in _files.items():
        if isinstance(path, str) and path.startswith(mounted + "/"):
            return folder + path[len(mounted):]
    return path

def _address(name):
    if name not in _addresses:
        raise socket.gaierror(f"no pod is called {name}")
    return _addresses[name]

builtins.open = lambda path, *more, **how: _open(_path(path), *more, **how)
os.stat = lambda path, *more, **how: _stat(_path(path), *more, **how)
socket.gethostbyname = _address
socket.create_connection = lambda place, *more, **how: _connect((_address(place[0]), place[1]), *more, **how)
'''


def admitted(body: dict[str, Any]) -> dict[str, Any]:
    metadata = {"namespace": "default", **body["metadata"]}
    attributes = Attributes(
        operation=CREATE,
        resource=resource_type(Job),
        name=metadata["name"],
        namespace="default",
        object={**body, "metadata": metadata},
        old=None,
    )
    outcome = AdmissionChain(Settings()).review(attributes, frozen_world(decode_object(Queue, a_queue())))
    assert outcome.denial == ""
    job: dict[str, Any] = outcome.object if outcome.object is not None else body
    return {**job, "metadata": {**job["metadata"], "uid": f"uid-{metadata['name']}"}}


class Node:
    """Runs the pods of a JobWorld as processes and reports how they end."""

    def __init__(self, world: JobWorld, folder: Path) -> None:
        self.world, self.folder = world, folder
        self.processes: dict[str, subprocess.Popen[str]] = {}
        self.addresses: dict[str, str] = {}
        self.ends: queue.Queue[tuple[str, int]] = queue.Queue()
        self.output: dict[str, str] = {}
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(NODE)

    def run(self) -> None:
        """Until the job has ended."""
        while self.world.phase not in ("Completed", "Failed", "Terminated", "Aborted"):
            self._start_pods()
            name, code = self.ends.get(timeout=DEADLINE)
            pod = self.world.get(Pod, name)
            if pod is not None and not pod.is_deleting:
                self.world.set_phase("Succeeded" if code == 0 else "Failed", name, exit_code=code)
                self.world.wait()

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait()

    def _start_pods(self) -> None:
        while started := [pod.name for pod in self.world.all(Pod) if pod.name not in self.processes]:
            expected = [f"{self.world.name}-{task.name}-{i}" for task in self.world.job.spec.tasks for i in range(task.replicas)]
            for name in expected:
                self.addresses.setdefault(f"{name}.{self.world.name}", f"127.0.0.{len(self.addresses) + 2}")
            for name in started:
                self._start(name)
            self.world.run(*started)
            self.world.wait()

    def _start(self, name: str) -> None:
        pod = self.world.raw(Pod, name)
        (container,) = pod["spec"]["containers"]
        files = dict(self._files(pod, container))
        environment = {
            **os.environ,
            **dict(self._environment(pod, container)),
            "PYTHONPATH": str(self.folder / "site"),
            "TEST_NAMES": " ".join(f"{host}={address}" for host, address in self.addresses.items()),
            "TEST_FILES": " ".join(f"{mounted}={folder}" for mounted, folder in files.items()),
        }
        environment["PATH"] = f"{Path(sys.executable).parent}:{environment.get('PATH', '')}"
        command = [*container["command"], *container.get("args", [])]
        for mounted, folder in files.items():  # for shells, which know nothing of NODE
            environment["PATH"] = environment["PATH"].replace(mounted, str(folder))
            if command[0] == "sh":
                command = [part.replace(mounted, str(folder)) for part in command]
        process = subprocess.Popen(
            command, env=environment, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self.processes[name] = process
        threading.Thread(target=self._watch, args=(name, process), daemon=True).start()

    def _watch(self, name: str, process: subprocess.Popen[str]) -> None:
        self.output[name] = process.communicate()[0]
        self.ends.put((name, process.returncode))

    def _environment(self, pod: dict[str, Any], container: dict[str, Any]) -> Iterator[tuple[str, str]]:
        for variable in container.get("env", []):
            source = variable.get("valueFrom")
            if source is None:
                yield variable["name"], variable.get("value", "")
            elif "configMapKeyRef" in source:
                reference = source["configMapKeyRef"]
                yield variable["name"], self.world.raw(ConfigMap, reference["name"])["data"][reference["key"]]
            else:
                key = source["fieldRef"]["fieldPath"].partition("'")[2].rpartition("'")[0]
                yield variable["name"], pod["metadata"]["annotations"][key]

    def _files(self, pod: dict[str, Any], container: dict[str, Any]) -> Iterator[tuple[str, Path]]:
        volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes", [])}
        for mount in container.get("volumeMounts", []):
            folder = self.folder / pod["metadata"]["name"] / mount["name"]
            for path, content in self._content(volumes[mount["name"]]):
                file = folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                file.chmod(0o755)
            yield mount["mountPath"], folder / mount.get("subPath", "")

    def _content(self, volume: dict[str, Any]) -> Iterator[tuple[str, bytes]]:
        if "configMap" in volume:
            for key, text in self.world.raw(ConfigMap, volume["configMap"]["name"])["data"].items():
                yield key, text.encode()
            return
        data = self.world.raw(Secret, volume["secret"]["secretName"])["data"]
        for item in volume["secret"]["items"]:
            yield item["path"], base64.b64decode(data[item["key"]])


@pytest.mark.parametrize("name", NAMES)
def test_an_example_runs_to_its_end(name: str, tmp_path: Path) -> None:
    documents = list(load_documents((EXAMPLES / f"{name}.yaml").read_bytes()))
    others = [document for document in documents if document["kind"] != "Job"]
    (job,) = (document for document in documents if document["kind"] == "Job")
    world = JobWorld(*others, admitted(job), name=name)
    world.settle()
    world.enqueue()
    node = Node(world, tmp_path)

    try:
        node.run()
    finally:
        node.stop()

    assert world.phase == "Completed", node.output
