"""`volcano history` as processes beside a system: one leads, another takes over; killed, away and back; both databases."""

from __future__ import annotations

import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from tests.system.real_system import DEADLINE, JOBS, VOLCANO, Up, environment, running_up, wait_until

pytestmark = pytest.mark.timeout(300)
LEASE = "/apis/coordination.k8s.io/v1/namespaces/volcano-system/leases/volcano-history"
QUICK_ELECTION = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=0.5s",
)
PORT = re.compile(r"the history answers at port (\d+)")


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    options = ("--nodes", "0", "--simulated-nodes", "2", "--dashboard=off", "--history=off")
    with running_up(tmp_path_factory.mktemp("service"), *options) as up:
        yield up


class HistoryProcess:
    """One `volcano history`, with the port at which it answers."""

    def __init__(self, up: Up, url: str) -> None:
        words = [*VOLCANO, "history", "--kubeconfig", str(up.data / "kubeconfig"), "--database", url]
        words += ["--listen-address", "127.0.0.1:0", *QUICK_ELECTION]
        self.process = subprocess.Popen(
            words, env=environment(up.folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(self.process.stderr)

    @property
    def address(self) -> str:
        def port() -> str:
            assert self.process.poll() is None, "".join(self.lines)
            found = [said[1] for line in self.lines if (said := PORT.search(line))]
            return found[0] if found else ""

        return f"http://127.0.0.1:{wait_until(port, 'it answers')}"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(DEADLINE)


class Recorders:
    """Starts and ends the processes of a test, and asks them as a user does."""

    def __init__(self, up: Up, url: str, folder: Path) -> None:
        self.up, self.url = up, url
        self._started: list[HistoryProcess] = []
        token = up.api.create("/api/v1/namespaces/default/serviceaccounts/default/token", {"spec": {}})
        binding = {
            "metadata": {"name": "reader"}, "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        }  # fmt: skip
        assert up.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).status in (201, 409)
        config = yaml.safe_load((up.data / "kubeconfig").read_text())
        user = {"token": token.body["status"]["token"]}
        config["users"] = [{"name": config["contexts"][0]["context"]["user"], "user": user}]
        self._kubeconfig = folder / "reader"
        self._kubeconfig.write_text(yaml.safe_dump(config))

    def start(self) -> HistoryProcess:
        self._started.append(HistoryProcess(self.up, self.url))
        return self._started[-1]

    def end(self) -> None:
        for each in self._started:
            each.kill()

    def leader(self) -> str:
        found = self.up.api.get(LEASE)
        return str(found.body["spec"].get("holderIdentity", "")) if found.status == 200 else ""

    def jobs(self, process: HistoryProcess) -> dict[str, str]:
        words = [str(Path(VOLCANO[0]).parent / "vacct"), "-o", "json", "--history-server", process.address]
        done = subprocess.run(
            [*words, "--kubeconfig", str(self._kubeconfig)],
            capture_output=True, text=True, timeout=DEADLINE, env=environment(self.up.folder), check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
        found = msgspec.json.decode(done.stdout)
        names = [job["name"] for job in found]
        assert len(names) == len(set(names)), "a job is recorded twice"
        return {job["name"]: job["phase"] for job in found}

    def gaps(self, process: HistoryProcess) -> Any:
        from urllib.request import Request, urlopen

        token = yaml.safe_load(self._kubeconfig.read_text())["users"][0]["user"]["token"]
        headers = {"Authorization": f"Bearer {token}"}
        with urlopen(Request(f"{process.address}/volcano/history/v1/gaps", headers=headers), timeout=30) as answer:
            return [gap for gap in msgspec.json.decode(answer.read()) if gap["kind"] != "samples"]


@pytest.fixture
def recorders(system: Up, database_url: str, tmp_path: Path) -> Iterator[Recorders]:
    found = Recorders(system, database_url, tmp_path)
    yield found
    found.end()
    system.api.delete(LEASE)
    for job in system.api.get(JOBS).body["items"]:
        system.api.delete(f"{JOBS}/{job['metadata']['name']}")
    wait_until(lambda: not system.api.get(JOBS).body["items"], "the jobs are gone")


def run_job(up: Up, name: str) -> None:
    container = {"name": "c", "image": "busybox", "resources": {"requests": {"cpu": "100m"}}}
    annotations = {"simulation.volcano.sh/duration": "0.1s"}
    template = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    body = {"metadata": {"name": name}, "spec": {"tasks": [{"name": "w", "replicas": 1, "template": template}]}}
    assert up.api.create(JOBS, body).status == 201
    up.until_phase(name, "Completed")


def test_another_process_takes_over_and_nothing_is_lost_or_doubled(system: Up, recorders: Recorders):
    first, second = recorders.start(), recorders.start()  # both make the schema
    wait_until(recorders.leader, "one leads")
    leader = recorders.leader()
    run_job(system, "before")
    wait_until(lambda: recorders.jobs(first) == {"before": "Completed"} == recorders.jobs(second), "both answer")

    leading = first if str(first.process.pid) in leader else second if str(second.process.pid) in leader else first
    leading.kill()
    other = second if leading is first else first
    run_job(system, "between")
    wait_until(
        lambda: recorders.jobs(other) == {"before": "Completed", "between": "Completed"}, "the other has taken over"
    )

    # Both are away while a job comes, runs and goes; the API server still has the changes
    other.kill()
    run_job(system, "away")
    assert system.api.delete(f"{JOBS}/away").status == 200
    wait_until(lambda: system.api.get(f"{JOBS}/away").status == 404, "it is gone")
    back = recorders.start()

    everything = {"before": "Completed", "between": "Completed", "away": "Completed"}
    wait_until(lambda: recorders.jobs(back) == everything, "what happened meanwhile is recorded")
    assert recorders.gaps(back) == []


def test_who_has_no_token_is_not_answered(recorders: Recorders):
    from urllib.error import HTTPError
    from urllib.request import urlopen

    process = recorders.start()

    with pytest.raises(HTTPError) as refused:
        urlopen(f"{process.address}/volcano/history/v1/jobs", timeout=30)

    assert refused.value.code == 401
