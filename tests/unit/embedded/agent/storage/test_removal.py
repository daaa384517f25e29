"""Folders of pods are removed whatever is in them."""

from __future__ import annotations

from volcano.embedded.agent.storage.removal import remove_tree


def test_folders_that_nobody_may_enter_and_links_are_removed(tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    folder = tmp_path / "pod"
    closed = folder / "layer" / "work" / "work"
    closed.mkdir(parents=True)
    (closed / "file").touch()
    (folder / "link").symlink_to(outside)
    closed.chmod(0)

    remove_tree(folder)

    assert not folder.exists() and outside.is_dir()


def test_a_folder_that_is_not_there_is_nothing_to_remove(tmp_path):
    remove_tree(tmp_path / "nowhere")
