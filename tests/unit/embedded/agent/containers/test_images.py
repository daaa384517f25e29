from __future__ import annotations

import pytest

from volcano.embedded.agent.containers.images import (
    CommandLine,
    Image,
    ImagesError,
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

    assert line == CommandLine(expected, "/images/nginx", "", {"A": "b"})


def test_an_image_nobody_knows_needs_a_command():
    assert command_line("x", ["run"], [], ()) == CommandLine(("run",))

    refusal = command_line("x", [], ["only", "args"], ())
    assert isinstance(refusal, NoImage) and refusal.reason == "ErrImageNeverPull" and "'x'" in refusal.message


@pytest.mark.parametrize("image", ["busybox", "busybox:1.36", "docker.io/library/alpine@sha256:0"])
def test_the_best_known_images_run_a_shell_when_nothing_is_asked_of_them(image: str):
    assert command_line(image, [], [], ()) == CommandLine(("sh",))
    assert isinstance(command_line(image, [], ["nope"], ()), NoImage)
    assert isinstance(command_line(f"reg:5000/me/{image}", [], [], ()), NoImage)


def test_arguments_that_begin_with_a_program_are_the_command_of_an_image_nobody_knows():
    def is_program(name: str) -> bool:
        return name == "sh"

    assert command_line("busybox", [], ["sh", "-c", "x"], (), is_program=is_program) == CommandLine(("sh", "-c", "x"))
    assert isinstance(command_line("busybox", [], ["--serve"], (), is_program=is_program), NoImage)
    assert command_line("nginx:1", [], ["sh"], (NGINX,), is_program=is_program).argv == ("sleep", "infinity", "sh")


@pytest.mark.parametrize("text", ["{", "a: b", "- root: /x", "- match: a\n  root: relative", "- match: a\n  typo: 1"])
def test_a_bad_file_is_refused_with_a_reason(text: str):
    with pytest.raises(ImagesError, match=r"images\.yaml: "):
        parse_images(text, "images.yaml")


def test_a_file_is_read_in_order():
    text = "- match: 'a*'\n  command: [one]\n- match: '*'\n  command: [two]\n"

    images = parse_images(text)

    assert command_line("abc", [], [], images) == CommandLine(("one",))
    assert command_line("other", [], [], images) == CommandLine(("two",))
    assert parse_images("") == ()
