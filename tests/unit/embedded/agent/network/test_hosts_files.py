from __future__ import annotations

from pathlib import Path

from tests.unit.embedded.agent.kit import a_pod
from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.network.hosts_content import hosts_file, names_of
from volcano.embedded.agent.network.hosts_files import HostsFiles


def a_peer(name: str, address: str = "", subdomain: str = "job", **status: str) -> AgentPod:
    return a_pod(
        metadata={"name": name, "uid": name},
        status={"podIP": address, "phase": "Running", **status},
        hostname=name,
        subdomain=subdomain,
    )


def lines(text: str) -> dict[str, str]:
    """Name → address, the first that counts."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            address, *names = line.split()
            for name in names:
                found.setdefault(name, address)
    return found


def test_a_pod_knows_itself_and_its_peers_by_every_promised_name():
    me, peer = a_peer("w-0"), a_peer("w-1", "10.0.0.2")

    names = lines(hosts_file(me, "10.0.0.1", [me, peer]))

    assert names["localhost"] == "127.0.0.1"
    assert names["w-0"] == names["w-0.job"] == "10.0.0.1"
    for name in ("w-1", "w-1.job", "w-1.job.default", "w-1.job.default.svc", "w-1.job.default.svc.cluster.local"):
        assert names[name] == "10.0.0.2"
    assert names["job"] == names["job.default.svc.cluster.local"] == "10.0.0.1"


def test_peers_without_an_address_or_finished_are_left_out():
    me = a_peer("w-0")
    peers = [me, a_peer("w-1"), a_peer("w-2", "10.0.0.3", phase="Succeeded")]

    names = lines(hosts_file(me, "10.0.0.1", peers))

    assert "w-1" not in names and "w-2" not in names


def test_aliases_are_added():
    pod = a_pod(hostAliases=[{"ip": "192.0.2.9", "hostnames": ["db", "db.example"]}])

    assert lines(hosts_file(pod, "10.0.0.1", []))["db.example"] == "192.0.2.9"


def test_short_names_only_count_in_their_namespace():
    assert names_of(a_peer("w-0"), "elsewhere") == [
        "w-0.job.default.svc.cluster.local",
        "w-0.job.default.svc",
        "w-0.job.default",
    ]


class Moments:
    """Timers that fire when told."""

    def __init__(self) -> None:
        self.waiting: list = []

    def after(self, _pause, call) -> None:
        self.waiting.append(call)

    def fire(self) -> None:
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            call()


def test_files_follow_the_peers_and_many_changes_are_one_rewrite(tmp_path: Path):
    moments = Moments()
    names = HostsFiles(moments, lambda _namespace: [])  # type: ignore[arg-type]
    file = tmp_path / "hosts"
    names.add(a_peer("w-0"), "10.0.0.1", file)
    moments.fire()
    inode = file.stat().st_ino

    for number in range(1, 9):
        names.observe(a_peer(f"w-{number}", f"10.0.0.{number + 1}"))
    assert len(moments.waiting) == 1
    moments.fire()
    assert lines(file.read_text())["w-8.job"] == "10.0.0.9"

    names.observe(a_peer("w-8", "10.0.0.9"), is_gone=True)
    moments.fire()
    assert "w-8.job" not in lines(file.read_text())
    assert file.stat().st_ino == inode, "a mounted file must not be replaced"


def test_a_peer_of_this_node_is_known_before_the_api_server_has_heard(tmp_path: Path):
    moments = Moments()
    names = HostsFiles(moments, lambda _namespace: [])  # type: ignore[arg-type]

    names.add(a_peer("w-0"), "10.0.0.1", tmp_path / "0")
    names.add(a_peer("w-1"), "10.0.0.2", tmp_path / "1")
    moments.fire()

    assert lines((tmp_path / "0").read_text())["w-1.job"] == "10.0.0.2"
