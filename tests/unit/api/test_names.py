"""Names in Kubernetes' words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api import names

CHECKS = [
    names.dns_label_problems,
    names.subdomain_problems,
    names.underscored_subdomain_problems,
    names.dns_1035_label_problems,
    names.qualified_name_problems,
    names.label_value_problems,
    names.env_name_problems,
    names.config_key_problems,
    names.port_name_problems,
    names.header_name_problems,
    names.percent_problems,
    names.path_segment_problems,
]


@pytest.mark.parametrize(
    ("check", "good"),
    [
        (names.dns_label_problems, ["a", "0", "my-name", "a" * 63]),
        (names.subdomain_problems, ["a", "a.b", "example.com", "a" * 253]),
        (names.underscored_subdomain_problems, ["_tcp.example", "a_b"]),
        (names.dns_1035_label_problems, ["a1", "my-name"]),
        (names.qualified_name_problems, ["cpu", "MyName", "example.com/my_name", "a" * 63]),
        (names.label_value_problems, ["", "MyValue", "my_value", "a" * 63]),
        (names.env_name_problems, ["PATH", "my.env", "1st", "a b"]),
        (names.config_key_problems, ["key.name", ".hidden", "a" * 253]),
        (names.port_name_problems, ["http", "a", "p-80"]),
        (names.header_name_problems, ["X-Header"]),
        (names.percent_problems, ["1%", "100%"]),
        (names.path_segment_problems, ["anything"]),
    ],
)
def test_good_names_have_no_problems(check, good):
    assert {text: check(text) for text in good} == {text: [] for text in good}


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (names.dns_label_problems, ["", "A", "-a", "a-", "a.b", "a_b", "a" * 64, "a\n", "é"]),
        (names.subdomain_problems, ["", "a..b", ".a", "A.b", "a" * 254, "a.b\n"]),
        (names.dns_1035_label_problems, ["1a", ""]),
        (names.qualified_name_problems, ["", "/a", "a/", "a/b/c", "-a", "A.com/x", "a" * 64]),
        (names.label_value_problems, ["-", "a b", "a" * 64]),
        (names.env_name_problems, ["", "a=b", "é", "a\n"]),
        (names.config_key_problems, ["", "..", ".", "..a", "a/b", "a" * 254]),
        (names.port_name_problems, ["", "A", "80", "a--b", "-a", "a" * 16]),
        (names.header_name_problems, ["", "a b"]),
        (names.percent_problems, ["%", "1", "-1%", "1.5%"]),
        (names.path_segment_problems, [".", "..", "a/b", "50%"]),
    ],
)
def test_bad_names_have_problems(check, bad):
    assert [text for text in bad if not check(text)] == []


def test_a_label_with_dots_is_told_so():
    assert names.dns_label_problems("a.b") == ["must not contain dots"]


def test_messages_are_those_of_kubernetes():
    assert names.dns_label_problems("A") == [
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        "with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is "
        "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
    ]
    assert names.qualified_name_problems("a/b/c") == [
        "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
        "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain prefix and '/' "
        "(e.g. 'example.com/MyName')"
    ]


def test_ports_lie_between_1_and_65535():
    assert [port for port in (0, 1, 65535, 65536) if names.port_number_problems(port)] == [0, 65536]


def test_annotations_may_hold_256_kib():
    assert not names.annotations_are_too_large({"k": "v" * (256 * 1024 - 1)})
    assert names.annotations_are_too_large({"k": "v" * (256 * 1024)})


@given(st.text())
def test_no_text_breaks_a_check(text):
    for check in CHECKS:
        assert all(isinstance(problem, str) for problem in check(text))
