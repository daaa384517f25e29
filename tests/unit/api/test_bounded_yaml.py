"""YAML of others is read within bounds on bytes, depth, values and documents."""

from __future__ import annotations

import time

import pytest

from volcano.api.bounded_yaml import MAX_YAML_DEPTH, TEXT_LOADER, BoundedYamlError, load_all_yaml, load_yaml

ALIASES = "\n".join(
    ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]", *(f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9))]
)
MERGES = "\n".join(["a0: &a0 {x: 1}", *(f"a{n}: &a{n} {{<<: [{','.join([f'*a{n - 1}'] * 10)}]}}" for n in range(1, 9))])
CHAIN = "\n".join(["a0: &a0 [1]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, MAX_YAML_DEPTH + 5))])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 35_000, "nested deeper"),
        ("{a: " * 35_000, "nested deeper"),
        ("- " * 35_000, "nested deeper"),
        ("? " * 35_000, "nested deeper"),
        (CHAIN, "nested deeper"),
        (ALIASES, "aliases are followed"),
        (MERGES, "aliases are followed"),
        ("&a [*a]", "not complete"),
        ("*a", "not complete"),
        ("x" * (4 * 2**20), "limit"),
        ("---\n" * 1001, "documents"),
        ("a: " + "9" * 100_000, "digits"),
        ("!!int 1:30", "invalid literal"),
        ("!!python/object/apply:os.system ['true']", "constructor"),
        ("a: [", "line"),
        ("a\n---\nb", "single document"),
        ("\ud800", "not text"),
        ("%TAG !a! b\n" * 200_000, "tag directives"),
        (("%TAG !a! b\n" * 100_000).encode("utf-16"), "tag directives"),
        ("!!bool maybe", "maybe"),
        ("a: 0x" + "f" * 1_000_000, "too large"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_out_of_bounds_is_refused(text, reason):
    with pytest.raises(BoundedYamlError, match=reason):
        load_yaml(text)


def test_the_number_of_values_is_bounded():
    assert load_yaml("[1, 2, 3]", max_nodes=4) == [1, 2, 3]
    with pytest.raises(BoundedYamlError, match="more than 3 values"):
        load_yaml("[1, 2, 3]", max_nodes=3)


def test_aliases_can_be_refused():
    assert load_yaml("a: &a [1]\nb: *a") == {"a": [1], "b": [1]}
    with pytest.raises(BoundedYamlError, match="not accepted"):
        load_all_yaml("a: &a [1]\nb: *a", allow_aliases=False)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:30", "1:30"), ("1:30.5", "1:30.5"), ("2026-01-01", "2026-01-01"), ("!!timestamp 2026-01-01", "2026-01-01"), ("yes", True),
        ("0644", 0o644), ("0x1F", 31), ("-0b11", -3), ("1_000", 1000), ("1.5e3", 1500.0), ("1e3", 1000.0), (".inf", float("inf")),
        ("-.5", -0.5), ("0", 0), ("+7", 7), ("", None), ("0o17", 15), ("v1.2", "v1.2"), ("1.2.3", "1.2.3"),
        ("18446744073709551615", 2**64 - 1), ("18446744073709551616", 2.0**64), ("%TAG !e! tag:example.org,2000:\n---\na: 1", {"a": 1}),
    ],
)  # fmt: skip
def test_scalars(text, value):
    assert load_yaml(text) == value


def test_integers_with_the_same_hash_do_not_take_quadratic_time():
    keys = [str(n * (2**61 - 1)) for n in range(1, 20_001)]
    started = time.process_time()

    found = load_yaml("{" + ",".join(f"{key}: 1" for key in keys) + "}")

    assert len(found) > 19_000
    assert time.process_time() - started < 4


def test_the_text_loader_reads_strings_only():
    assert load_yaml("a: 1", loader=TEXT_LOADER) == {"a": "1"}
