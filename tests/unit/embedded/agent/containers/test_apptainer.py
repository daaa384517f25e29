"""The command line of Apptainer for a container."""

from __future__ import annotations

from volcano.embedded.agent.containers.apptainer import apptainer_command, is_apptainer_image


def test_a_command_is_executed_with_the_volumes_and_the_pods_own_files():
    line = apptainer_command(
        "apptainer",
        "docker://alpine",
        ["sh", "-c", "true"],
        has_command=True,
        mounted=["/data", "/tmp"],
        working_dir="/w",
    )

    assert line[:3] == ("apptainer", "--quiet", "exec")
    assert line[-4:] == ("docker://alpine", "sh", "-c", "true")
    binds = line[line.index("--bind") + 1].split(",")
    assert {"/data", "/etc/hosts", "/etc/resolv.conf"} <= set(binds) and len(binds) == len(set(binds))
    assert line[line.index("--pwd") + 1] == "/w"


def test_without_a_command_the_images_own_runs():
    assert apptainer_command("singularity", "/a.sif", ["x"], has_command=False)[2] == "run"


def test_only_schemes_and_sif_files_are_for_apptainer():
    assert is_apptainer_image("docker://ghcr.io/a/b:1") and is_apptainer_image("/images/a.sif")
    assert not is_apptainer_image("alpine") and not is_apptainer_image("a.sif")
