from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.embedded.agent.kit import a_pod
from volcano.embedded.agent.containers.environment import Missing, References
from volcano.embedded.agent.storage.volume_files import File, files_of, needed_by, safe_path
from volcano.embedded.agent.storage.volumes import host_folder, write_files

KNOWN = References({"c": {"a": b"A", "b": b"B"}}, {"s": {"k": b"K"}}, host_address="h", address="p")


def volume(**source: object):
    pod = a_pod(volumes=[{"name": "v", **source}])
    return pod, pod.spec.volumes[0]


def test_a_config_map_is_a_folder_of_its_entries():
    assert files_of(*volume(configMap={"name": "c"}), KNOWN) == {"a": File(b"A"), "b": File(b"B")}


def test_items_choose_entries_paths_and_modes():
    items = [{"key": "a", "path": "x/y", "mode": 0o600}]

    assert files_of(*volume(configMap={"name": "c", "items": items}), KNOWN) == {"x/y": File(b"A", 0o600)}


def test_projected_sources_come_together():
    sources = [
        {"configMap": {"name": "c", "items": [{"key": "a", "path": "a"}]}},
        {"secret": {"name": "s"}},
        {"downwardAPI": {"items": [{"path": "ip", "fieldRef": {"fieldPath": "status.podIP"}}]}},
        {"serviceAccountToken": {"path": "token"}},
    ]

    files = files_of(*volume(projected={"sources": sources, "defaultMode": 0o400}), KNOWN, {"token": b"T"})

    assert {path: file.content for path, file in files.items()} == {"a": b"A", "k": b"K", "ip": b"p", "token": b"T"}
    assert {file.mode for file in files.values()} == {0o400}


@pytest.mark.parametrize(
    "source",
    [
        {"configMap": {"name": "nope"}},
        {"secret": {"secretName": "nope"}},
        {"configMap": {"name": "c", "items": [{"key": "nope", "path": "x"}]}},
    ],
)
def test_what_is_missing_is_named_unless_it_is_optional(source: dict[str, dict[str, object]]):
    with pytest.raises(Missing, match="nope"):
        files_of(*volume(**source), KNOWN)

    [kind] = source
    assert files_of(*volume(**{kind: {**source[kind], "optional": True}}), KNOWN) == {}


@pytest.mark.parametrize("path", ["", "/abs", "..", "a/../b", "a//b", "./a", "a/.", "a\0b"])
def test_no_path_leads_out_of_a_volume(path: str):
    with pytest.raises(Missing):
        safe_path(path)


@given(st.text(min_size=1, max_size=30))
def test_a_safe_path_stays_inside(path: str):
    try:
        safe = safe_path(path)
    except Missing:
        return
    parts = ("/root/" + safe).split("/")
    assert parts[:2] == ["", "root"] and ".." not in parts and "" not in parts[1:]


def test_everything_a_pod_mentions_is_wanted():
    pod = a_pod(
        containers=[
            {
                "name": "main",
                "image": "x",
                "env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "e", "key": "k"}}}],
                "envFrom": [{"secretRef": {"name": "f"}}],
            }
        ],
        volumes=[{"name": "v", "configMap": {"name": "c"}}, {"name": "w", "secret": {"secretName": "s"}}],
    )

    wanted = needed_by(pod)

    assert (wanted.config_maps, wanted.secrets) == (frozenset({"c", "e"}), frozenset({"s", "f"}))


def test_files_are_written_with_their_modes(tmp_path):
    write_files(tmp_path / "v", {"a": File(b"A", 0o640), "deep/b": File(b"B")})
    write_files(tmp_path / "v", {"a": File(b"AA", 0o600)})

    assert (tmp_path / "v" / "a").read_bytes() == b"AA"
    assert (tmp_path / "v" / "a").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "v" / "deep" / "b").read_bytes() == b"B"


def test_a_link_in_a_volume_is_replaced_not_followed(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("safe")
    (tmp_path / "v").mkdir()
    (tmp_path / "v" / "a").symlink_to(victim)

    write_files(tmp_path / "v", {"a": File(b"A")})

    assert victim.read_text() == "safe" and (tmp_path / "v" / "a").read_bytes() == b"A"


def test_host_paths_are_made_only_where_their_type_says_so(tmp_path):
    assert host_folder({"path": str(tmp_path / "made"), "type": "DirectoryOrCreate"}) == str(tmp_path / "made")
    with pytest.raises(Missing):
        host_folder({"path": str(tmp_path / "absent"), "type": "Directory"})
    with pytest.raises(Missing):
        host_folder({"path": "relative"})
    with pytest.raises(Missing):
        host_folder({"path": "/a/../b"})
