"""Ledger: what the server acknowledged to clients, to be compared with what is there afterwards."""

from __future__ import annotations

import http.client
import random
import threading
from collections import Counter
from pathlib import Path
from typing import Any

from tests.running_server import Client
from tests.system.real_system import JOBS, Up

MAPS = "/api/v1/namespaces/default/configmaps"
MAX_LIVE_MAPS = 200
MAX_LIVE_JOBS = 6
MARK = "echo $MARK >> /marks/began; sleep {seconds}; echo $MARK >> /marks/ended"


class Ledger:
    """Acknowledged objects by name; what was asked and not answered may be either way."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.maps: dict[str, int] = {}  # name → the value that was acknowledged last
        self.unsure: set[str] = set()  # a request about it was not answered
        self.jobs: set[str] = set()
        self.written = 0
        self.refused: Counter[int] = Counter()

    def problems(self, api: Client) -> list[str]:
        """What is lost, wrong, or there although its deletion was acknowledged; not what changes meanwhile."""
        with self.lock:
            expected, unsure, submitted = dict(self.maps), set(self.unsure), set(self.jobs)
        items = every(api, MAPS)
        with self.lock:
            changed = {name for name, _ in expected.items() ^ self.maps.items()}
            unsure |= self.unsure | changed
        found = {
            item["metadata"]["name"]: int(item["data"]["value"])
            for item in items
            if "value" in (item.get("data") or {})
        }
        wrong = [f"{name}: acknowledged at {value}, and it is {found.get(name, 'gone')}"
                 for name, value in expected.items() if name not in unsure and found.get(name) != value]  # fmt: skip
        wrong += [
            f"{name}: its deletion was acknowledged" for name in found if name not in expected and name not in unsure
        ]
        jobs = {item["metadata"]["name"] for item in every(api, JOBS)}
        return wrong + [f"job {name} is lost" for name in submitted - jobs]


def every(api: Client, path: str) -> list[dict[str, Any]]:
    answer = api.get(path)
    assert answer.status == 200, answer
    return answer.body["items"]


class Writer(threading.Thread):
    """Creates, updates and deletes ConfigMaps of its own until told to stop."""

    def __init__(self, up: Up, ledger: Ledger, number: int, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._up, self._ledger, self._number, self._chance = up, ledger, number, chance
        self._made = 0
        self._own: list[str] = []
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.wait(0.02):
            try:
                self._step(self._up.api)
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                self.stopping.wait(0.3)  # the server is down, or its files are being written

    def _step(self, api: Client) -> None:
        deletes = len(self._own) > MAX_LIVE_MAPS // 2 and self._chance.random() < 0.6
        if deletes:
            name = self._own.pop(self._chance.randrange(len(self._own)))
            self._ask(name, None, lambda: api("DELETE", f"{MAPS}/{name}"))
        elif self._own and self._chance.random() < 0.5:
            name = self._chance.choice(self._own)
            value = self._ledger.maps.get(name, 0) + 1
            body = {"data": {"value": str(value)}}
            kind = "application/merge-patch+json"
            self._ask(name, value, lambda: api("PATCH", f"{MAPS}/{name}", body, content_type=kind))
        else:
            self._made += 1
            name = f"w{self._number}-{self._made}"
            self._own.append(name)
            body = {"metadata": {"name": name}, "data": {"value": "0", "fill": "x" * self._chance.randint(0, 2000)}}
            self._ask(name, 0, lambda: api("POST", MAPS, body))

    def _ask(self, name: str, value: int | None, send: Any) -> None:
        with self._ledger.lock:
            was_unsure = name in self._ledger.unsure
            self._ledger.unsure.add(name)  # until it is answered
        answer = send()
        with self._ledger.lock:
            if answer.status < 300:
                self._ledger.written += 1
                if value is None:
                    self._ledger.maps.pop(name, None)
                else:
                    self._ledger.maps[name] = value
                self._ledger.unsure.discard(name)
                return
            self._ledger.refused[answer.status] += 1
            if answer.status == 404 and name in self._own:  # its creation was not answered, and did not happen
                self._own.remove(name)
            if answer.status < 500 and not was_unsure:  # refused for certain
                self._ledger.unsure.discard(name)


class Submitter(threading.Thread):
    """Keeps some jobs of one process each running; each leaves a mark when it begins and when it ends."""

    def __init__(self, up: Up, ledger: Ledger, marks: Path, chance: random.Random) -> None:
        super().__init__(daemon=True)
        self._up, self._ledger, self._marks, self._chance = up, ledger, marks, chance
        self._made = 0
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.wait(1.0):
            try:
                self._submit(self._up.api)
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                self.stopping.wait(0.3)

    def _submit(self, api: Client) -> None:
        live = sum((item.get("status") or {}).get("state", {}).get("phase") not in ("Completed", "Failed")
                   for item in every(api, JOBS))  # fmt: skip
        if live >= MAX_LIVE_JOBS:
            return
        self._made += 1
        name = f"job{self._made}"
        answer = api("POST", JOBS, a_job(name, self._marks, self._chance.choice((0, 1, 3, 8))))
        if answer.status == 201:
            with self._ledger.lock:
                self._ledger.jobs.add(name)


def a_job(name: str, marks: Path, seconds: int) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "busybox",
        "command": ["sh", "-c", MARK.format(seconds=seconds)],
        "env": [{"name": "MARK", "value": name}],
        "resources": {"requests": {"cpu": "100m"}},
        "volumeMounts": [{"name": "marks", "mountPath": "/marks"}],
    }
    volumes = [{"name": "marks", "hostPath": {"path": str(marks)}}]
    template = {"spec": {"restartPolicy": "Never", "containers": [container], "volumes": volumes}}
    tasks = [{"name": "t", "replicas": 1, "template": template}]
    return {"metadata": {"name": name}, "spec": {"minAvailable": 1, "schedulerName": "volcano", "tasks": tasks}}
