"""What each tier of isolation means for pods, and what is told to the user about it."""

from __future__ import annotations

from volcano.embedded.agent.node.abilities import abilities, files, isolation, networks, program


def test_root_and_user_namespaces_isolate_pods_and_their_absence_names_what_the_kernel_must_grant():
    assert isolation("root").is_there and isolation("user").is_there
    lost = isolation("none")

    assert not lost.is_there and "CAP_SYS_ADMIN" in lost.capability and lost.improvement


def test_only_root_can_give_each_pod_its_network():
    lost = networks("user")

    assert (lost.is_there, lost.capability) == (False, "CAP_NET_ADMIN")
    assert "share this machine's network" in lost.detail


def test_a_missing_program_is_told_with_its_use():
    lost = program("no-such-program-here", "nothing at all", "apt-get install it")

    assert not lost.is_there and "needed for nothing at all" in lost.detail and "apt-get install it" in lost.improvement


def test_a_data_directory_that_does_not_exist_yet_is_judged_by_the_folder_above(tmp_path):
    written, disk = files(tmp_path / "not" / "yet")

    assert written.is_there and not written.improvement
    assert str(tmp_path) in disk.detail


def test_what_is_there_needs_no_improvement(tmp_path):
    assert [each.name for each in abilities(tmp_path) if each.is_there and each.improvement] == []
