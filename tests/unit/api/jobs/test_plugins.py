"""The table of job plugins, and how their arguments are read."""

from __future__ import annotations

import pytest

from volcano.api.jobs.plugins import JOB_PLUGINS, added_plugins, parse_arguments

SVC, SSH, RAY = JOB_PLUGINS["svc"], JOB_PLUGINS["ssh"], JOB_PLUGINS["ray"]


def test_the_eight_plugins_of_volcano_are_there() -> None:
    assert set(JOB_PLUGINS) == {"env", "svc", "ssh", "tensorflow", "pytorch", "mpi", "ray", "hcclrank"}


def test_no_arguments_means_the_defaults() -> None:
    parsed = parse_arguments(SSH, [])

    assert parsed.text("ssh-key-file-path") == "/root/.ssh"
    assert parsed.number("ssh-port") == 22
    assert parsed.error == ""


@pytest.mark.parametrize(
    "spelling", [["--ssh-port=2022"], ["-ssh-port=2022"], ["--ssh-port", "2022"], ["--ssh-port=0x7e6"]]
)
def test_a_value_is_given_with_one_or_two_dashes_or_as_the_next_element(spelling: list[str]) -> None:
    assert parse_arguments(SSH, spelling).number("ssh-port") == 2022


def test_a_leading_zero_means_octal() -> None:
    assert parse_arguments(SSH, ["--ssh-port=010"]).number("ssh-port") == 8


@pytest.mark.parametrize(
    ("text", "value"), [("=true", True), ("=T", True), ("", True), ("=0", False), ("=False", False)]
)
def test_a_switch_takes_its_value_after_an_equals_sign_only(text: str, value: bool) -> None:
    parsed = parse_arguments(SVC, [f"--disable-network-policy{text}"])

    assert parsed.switch("disable-network-policy") is value


def test_a_switch_does_not_take_the_next_element() -> None:
    parsed = parse_arguments(SVC, ["--disable-network-policy", "false", "--inject-hosts-env=false"])

    assert parsed.switch("disable-network-policy") is True
    assert parsed.switch("inject-hosts-env") is True  # `false` is no argument: reading stopped there


def test_an_unknown_argument_hides_those_after_it_but_not_those_before() -> None:
    parsed = parse_arguments(SSH, ["--ssh-port=23", "--no-root", "--ssh-key-file-path=/keys"])

    assert parsed.number("ssh-port") == 23
    assert parsed.text("ssh-key-file-path") == "/root/.ssh"
    assert "--no-root" in parsed.error
    assert parsed.ignored == ("--no-root", "--ssh-key-file-path=/keys")


@pytest.mark.parametrize(
    "bad",
    [
        "--ssh-port=many",
        "--ssh-port",
        "---ssh-port=1",
        "--=1",
        "ssh-port=1",
        "-",
        "",
        "--ssh-port=9223372036854775808",
        "--ssh-port=1__0",
    ],
)
def test_a_bad_argument_is_said_and_leaves_the_default(bad: str) -> None:
    parsed = parse_arguments(SSH, [bad])

    assert parsed.error
    assert parsed.number("ssh-port") == 22


def test_frameworks_pull_in_what_they_need() -> None:
    assert added_plugins(["mpi"]) == ("svc", "ssh")
    assert added_plugins(["pytorch", "svc"]) == ()
    assert added_plugins(["env", "ssh", "hcclrank"]) == ()
    assert added_plugins(["nonsense"]) == ()


def test_names_of_arguments_keep_their_case() -> None:
    assert parse_arguments(RAY, ["--headContainer=ray"]).text("headContainer") == "ray"
    assert parse_arguments(RAY, ["--clientServerPort=1"]).error
