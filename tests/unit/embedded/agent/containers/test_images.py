from __future__ import annotations

import pytest

from volcano.embedded.agent.containers.images import (
    MAX_FILE_BYTES,
    CommandLine,
    Image,
    ImagesError,
    ImagesFile,
    NoImage,
    command_line,
    matches,
    parse_images,
)

NGINX = Image(match="nginx*", command=("sleep", "infinity"), args=("x",), root="/images/nginx", env={"A": "b"})


@pytest.mark.parametrize(
    "image", ["nginx", "nginx:1.27", "docker.io/library/nginx:1", "reg:5000/a/nginx@sha256:0", "nginx-unprivileged"]
)
def test_a_pattern_fits_a_name_with_or_without_registry_and_tag(image: str):
    assert matches("nginx*", image)


@pytest.mark.parametrize(("pattern", "image"), [("nginx", "nginx2"), ("redis", "nginx"), ("a/nginx", "nginx")])
def test_a_pattern_does_not_fit_other_names(pattern: str, image: str):
    assert not matches(pattern, image)


@pytest.mark.parametrize(
    ("command", "args", "expected"),
    [
        ([], [], ("sleep", "infinity", "x")),
        ([], ["y"], ("sleep", "infinity", "y")),
        (["run"], [], ("run",)),
        (["run"], ["y"], ("run", "y")),
    ],
)
def test_the_containers_own_words_count_before_the_images(
    command: list[str], args: list[str], expected: tuple[str, ...]
):
    line = command_line("nginx:1", command, args, (NGINX,))

    assert line == CommandLine(expected, "/images/nginx", "", {"A": "b"}, program="sleep")


def test_an_image_nobody_knows_needs_a_command():
    assert command_line("x", ["run"], [], ()) == CommandLine(("run",))

    refusal = command_line("x", [], ["only", "args"], ())
    assert isinstance(refusal, NoImage) and refusal.reason == "ErrImageNeverPull" and "'x'" in refusal.message


@pytest.mark.parametrize("image", ["busybox", "busybox:1.36", "docker.io/library/alpine@sha256:0"])
def test_the_best_known_images_run_a_shell_when_nothing_is_asked_of_them(image: str):
    assert command_line(image, [], [], ()) == CommandLine(("sh",), has_busybox=True)
    assert isinstance(command_line(image, [], ["nope"], ()), NoImage)
    assert isinstance(command_line(f"reg:5000/me/{image}", [], [], ()), NoImage)


def test_arguments_that_begin_with_a_program_are_the_command_of_an_image_nobody_knows():
    def is_program(name: str) -> bool:
        return name == "sh"

    assert command_line("busybox", [], ["sh", "-c", "x"], (), is_program=is_program) == CommandLine(
        ("sh", "-c", "x"), has_busybox=True
    )
    assert isinstance(command_line("busybox", [], ["--serve"], (), is_program=is_program), NoImage)
    assert command_line("nginx:1", [], ["sh"], (NGINX,), is_program=is_program).argv == ("sleep", "infinity", "sh")


@pytest.mark.parametrize("text", ["{", "a: b", "- root: /x", "- match: a\n  root: relative", "- match: a\n  typo: 1"])
def test_a_bad_file_is_refused_with_a_reason(text: str):
    with pytest.raises(ImagesError, match=r"images\.yaml: "):
        parse_images(text, "images.yaml")


def test_a_file_is_read_in_order():
    text = "- match: 'a*'\n  command: [one]\n- match: '*'\n  command: [two]\n"

    images = parse_images(text)

    assert command_line("abc", [], [], images) == CommandLine(("one",), program="one")
    assert command_line("other", [], [], images) == CommandLine(("two",), program="two")
    assert parse_images("") == ()


def test_a_virtual_environment_is_named_in_the_containers_environment():
    images = parse_images("- match: 'rayproject/*'\n  venv: /opt/ray\n")

    line = command_line("rayproject/ray:2.9.0", ["ray", "start"], [], images)

    assert isinstance(line, CommandLine)
    assert (line.venv, line.env) == ("/opt/ray", {"VIRTUAL_ENV": "/opt/ray"})


def test_the_virtual_environment_that_a_hint_names_is_used_where_it_exists():
    line = command_line("rayproject/ray:2.9.0", ["ray", "start"], [], (), is_venv=lambda path: path == "/opt/ray")

    assert isinstance(line, CommandLine)
    assert line.venv == "/opt/ray"


def test_arguments_that_begin_with_a_program_of_the_virtual_environment_are_the_command():
    images = parse_images("- match: 'rayproject/*'\n  venv: /opt/ray\n")

    line = command_line(
        "rayproject/ray", [], ["ray", "start"], images, is_program=lambda path: path == "/opt/ray/bin/ray"
    )

    assert isinstance(line, CommandLine)
    assert line.argv == ("ray", "start")


@pytest.mark.parametrize(
    ("image", "command"),
    [
        ("rayproject/ray:2.9.0", "pip install 'ray[default]'"),
        ("apache/spark:4.0.0", "pip install pyspark"),
        ("docker.io/pytorch/pytorch", "pip install torch"),
        ("tensorflow/tensorflow:2.16", "pip install tensorflow"),
        ("mpioperator/mpi-pi:openmpi", "apt-get install openmpi-bin"),
    ],
)
def test_an_image_whose_programs_are_missing_names_the_command_that_installs_them(image, command):
    found = command_line(image, [], [], ())

    assert isinstance(found, NoImage)
    assert command in found.message


def test_arguments_of_an_image_with_an_entrypoint_are_the_programs():
    assert command_line("curlimages/curl:8", [], ["-s", "http://web"], ()) == CommandLine(
        ("curl", "-s", "http://web"), has_busybox=True
    )


def test_images_for_apptainer_are_named_by_a_scheme_a_file_or_a_row():
    images = parse_images("- match: 'lammps'\n  apptainer: docker://lammps/lammps\n")

    by_scheme = command_line("docker://alpine", ["sh"], ["-c", "true"], ())
    by_file = command_line("/images/a.sif", [], ["1"], ())
    by_row = command_line("lammps", [], [], images)

    assert (by_scheme.apptainer, by_scheme.argv, by_scheme.has_command) == (
        "docker://alpine",
        ("sh", "-c", "true"),
        True,
    )
    assert (by_file.apptainer, by_file.argv, by_file.has_command) == ("/images/a.sif", ("1",), False)
    assert (by_row.apptainer, by_row.has_command) == ("docker://lammps/lammps", False)


@pytest.mark.parametrize("row", ["venv: opt/ray", "apptainer: alpine", "root: here"])
def test_a_row_that_cannot_be_used_is_refused_by_field(row):
    with pytest.raises(ImagesError, match=row.partition(":")[0]):
        parse_images(f"- match: x\n  {row}\n")


def test_a_file_that_is_too_large_is_refused(tmp_path):
    path = tmp_path / "images.yaml"
    path.write_text("#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(ImagesError, match="larger than"):
        ImagesFile(path)


def test_a_changed_file_is_read_again_and_a_broken_one_changes_nothing(tmp_path):
    path = tmp_path / "images.yaml"
    path.write_text("- match: a\n  command: [one]\n")
    file = ImagesFile(path)

    path.write_text("- match: a\n  command: [one, two]\n")
    assert file.rows()[0].command == ("one", "two")
    path.write_text("- match: [")
    assert file.rows()[0].command == ("one", "two")
    path.unlink()
    assert file.rows()[0].command == ("one", "two")
    path.write_text("- match: b\n  command: [three]\n")
    assert file.rows()[0].match == "b"
