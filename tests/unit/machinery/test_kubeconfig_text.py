"""A kubeconfig that is written and read without a YAML library is YAML all the same."""

from __future__ import annotations

import pytest

from volcano.api.bounded_yaml import load_yaml
from volcano.machinery.certificates import Pair, kubeconfig
from volcano.machinery.kubeconfig_text import read_own

PAIR = Pair(b"a certificate" * 100, b"a key")


def written(**names: str) -> bytes:
    return kubeconfig("https://127.0.0.1:6443", b"the authority", PAIR, **names)


@pytest.mark.parametrize("names", [{}, {"user": "jane.doe-2"}, {"cluster": "other"}])
def test_what_is_written_is_read_as_yaml_reads_it(names):
    text = written(**names)

    assert read_own(text) == load_yaml(text)


@pytest.mark.parametrize("user", ["yes", "Null", "system:node:a", "a: b", "a\nb", "- a"])
def test_a_name_that_yaml_would_take_for_something_else_is_quoted_and_read_as_yaml(user):
    text = written(user=user)

    assert load_yaml(text)["users"][0]["name"] == user
    assert read_own(text) is None


@pytest.mark.parametrize(
    "change",
    [
        (b"current-context: volcano", b"current-context: another"),
        (b"namespace: default", b"namespace: mine"),
        (b"server: https", b"server:  https"),
        (b"kind: Config\n", b""),
        (b"users:\n", b"users:  # ours\n"),
    ],
)
def test_a_text_that_somebody_changed_is_left_to_yaml(change):
    assert read_own(written().replace(*change)) is None
