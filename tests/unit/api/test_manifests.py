"""Manifests are read as kubectl reads them."""

import pytest

from volcano.api.manifests import ManifestError, load_documents


def value(text):
    return load_documents(f"apiVersion: v1\nkind: X\nv: {text}\n")[0]["v"]


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("yes", "yes"), ("on", "on"), ("1:30", "1:30"), ("2020-01-01", "2020-01-01"), ("true", True), ("~", None),
        ("", None), ("0644", 0o644), ("0x10", 16), ("-3", -3), ("1.5", 1.5), ("1e3", 1000.0), ('"5"', "5"), ("0", 0),
    ],
)  # fmt: skip
def test_scalars_have_jsons_types_only(text, read):
    assert value(text) == read


def test_lists_are_unrolled_and_empty_documents_skipped():
    text = "---\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A}\n- {apiVersion: v1, kind: B}\n"

    assert [each["kind"] for each in load_documents(text)] == ["A", "B"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "line"),
        ("- 1", "document 1 is not an object"),
        ("kind: X", "apiVersion is missing"),
        ("apiVersion: v1", "kind is missing"),
        ("apiVersion: v1\nkind: 3", "kind is missing"),
        ("a: !!python/object:os.system {}", "YAML"),
        ("x" * (4 * 1024 * 1024), "limit"),
        ("[" * 20000 + "]" * 20000, "nested|YAML"),
    ],
)
def test_what_is_no_manifest_is_refused_with_the_reason(text, says):
    with pytest.raises(ManifestError, match=says):
        load_documents(text)


def test_a_bomb_of_aliases_is_refused():
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]

    with pytest.raises(ManifestError, match="aliases"):
        load_documents("\n".join(lines))
