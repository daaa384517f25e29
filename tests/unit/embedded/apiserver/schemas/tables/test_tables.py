"""Tables: rows recorded from Kubernetes' own printers, ages, and the columns of CRDs."""

from __future__ import annotations

import copy
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.api.ages import human_duration
from volcano.api.schemas.crds import crd_manifests
from volcano.api.scheme import BUILT_IN, VOLCANO, find_resource_type
from volcano.embedded.apiserver.schemas.builtin.core_defaults import apply_core_defaults
from volcano.embedded.apiserver.schemas.tables.json_paths import PathError, compile_path, find
from volcano.embedded.apiserver.schemas.tables.tables import table_for

VECTORS = json.loads((Path(__file__).parents[1] / "vectors/tables.json").read_text())
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
COLUMNS = {c["metadata"]["name"]: c["spec"]["versions"][0].get("additionalPrinterColumns") for c in crd_manifests()}


def _resource(obj):
    return find_resource_type(obj["apiVersion"].rpartition("/")[0], obj["kind"])


@pytest.mark.parametrize("vector", VECTORS, ids=lambda v: v["object"]["kind"])
def test_a_row_is_that_of_kubectl(vector):
    obj = copy.deepcopy(vector["object"])
    apply_core_defaults(_resource(obj), obj)

    table = table_for(_resource(obj), [obj], now=datetime.fromisoformat(vector["now"]))

    columns = [f"{c['name']}:{c['type']}:{c['format']}:{c['priority']}" for c in table["columnDefinitions"]]
    assert columns == vector["columns"]
    assert table["rows"][0]["cells"] == vector["cells"]


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(seconds=-5), "<invalid>"),
        (timedelta(seconds=-1), "0s"),
        (timedelta(0), "0s"),
        (timedelta(seconds=119), "119s"),
        (timedelta(seconds=120), "2m"),
        (timedelta(minutes=2, seconds=3), "2m3s"),
        (timedelta(minutes=10, seconds=3), "10m"),
        (timedelta(minutes=179), "179m"),
        (timedelta(hours=3), "3h"),
        (timedelta(hours=7, minutes=59), "7h59m"),
        (timedelta(hours=47), "47h"),
        (timedelta(days=3, hours=4), "3d4h"),
        (timedelta(days=8, hours=4), "8d"),
        (timedelta(days=729), "729d"),
        (timedelta(days=735), "2y5d"),
        (timedelta(days=365 * 9), "9y"),
    ],
)
def test_ages_are_written_as_kubectl_writes_them(duration, text):
    assert human_duration(duration) == text


def _job(**status):
    return {
        "metadata": {"name": "j", "creationTimestamp": "2026-01-02T03:00:00Z"},
        "spec": {"queue": "default"},
        "status": {"state": {"phase": "Running"}, "minAvailable": 2, **status},
    }


def test_a_custom_resource_is_shown_by_its_own_columns():
    vcjob = find_resource_type("batch.volcano.sh", "Job")

    table = table_for(vcjob, [_job(running=2), _job()], crd_columns=COLUMNS["jobs.batch.volcano.sh"], now=NOW)

    names = [(c["name"], c["priority"]) for c in table["columnDefinitions"]]
    assert names == [("Name", 0), ("STATUS", 0), ("minAvailable", 0), ("RUNNINGS", 0), ("AGE", 0), ("QUEUE", 1)]
    assert [row["cells"] for row in table["rows"]] == [
        ["j", "Running", 2, 2, "4m5s", "default"],
        ["j", "Running", 2, None, "4m5s", "default"],
    ]


def test_a_custom_resource_without_columns_shows_its_age():
    command = find_resource_type("bus.volcano.sh", "Command")
    obj = {"metadata": {"name": "c", "creationTimestamp": "2026-01-02T03:04:00Z"}}

    table = table_for(command, [obj], is_custom=True, now=NOW)

    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Age"]
    assert table["rows"][0]["cells"] == ["c", "5s"]


def test_a_built_in_kind_without_a_printer_shows_when_it_was_created():
    role = find_resource_type("rbac.authorization.k8s.io", "Role")
    obj = {"metadata": {"name": "r", "creationTimestamp": "2026-01-02T03:04:00Z"}}

    table = table_for(role, [obj], now=NOW)

    assert [c["name"] for c in table["columnDefinitions"]] == ["Name", "Created At"]
    assert table["rows"][0]["cells"] == ["r", "2026-01-02T03:04:00Z"]


@pytest.mark.parametrize(
    ("kind", "value", "cell"),
    [
        ("string", 5, "5"),
        ("string", True, "true"),
        ("string", {"b": 1, "a": [1]}, '{"a":[1],"b":1}'),
        ("string", 1.5, "1.5"),
        ("integer", 3.7, 3),
        ("integer", "3", None),
        ("number", 2, 2.0),
        ("boolean", "true", None),
        ("date", "2026-01-02T03:04:00Z", "5s"),
        ("date", "yesterday", "<invalid>"),
        ("date", 5, None),
    ],
)
def test_a_cell_is_of_its_columns_type(kind, value, cell):
    columns = [{"name": "X", "type": kind, "jsonPath": ".spec.x"}]

    table = table_for(VOLCANO[0], [{"metadata": {"name": "n"}, "spec": {"x": value}}], crd_columns=columns, now=NOW)

    assert table["rows"][0]["cells"] == ["n", cell]


@pytest.mark.parametrize("include", ["Metadata", "Object", "None"])
def test_rows_carry_what_the_client_asked_for(include):
    obj = {"metadata": {"name": "n"}, "data": {"a": "b"}}

    table = table_for(find_resource_type("", "ConfigMap"), [obj], now=NOW, include_object=include)

    row = table["rows"][0]
    if include == "Metadata":
        assert row["object"] == {
            "kind": "PartialObjectMetadata",
            "apiVersion": "meta.k8s.io/v1",
            "metadata": {"name": "n"},
        }
    else:
        assert row.get("object") == (obj if include == "Object" else None)


DOCUMENT = {
    "a": {"b.c": 1, "d-e": [10, 20, 30]},
    "conditions": [{"type": "Ready", "status": "True", "n": 3}, {"type": "Other", "status": "False"}],
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".a.d-e[0]", [10]),
        (".a.d-e[-1]", [30]),
        (".a.d-e[9]", []),
        (".a.d-e[*]", [10, 20, 30]),
        (".a.d-e[1:]", [20, 30]),
        (".a['b.c']", [1]),
        (r".a.b\.c", [1]),
        ("{.a.d-e[1]}", [20]),
        ('.conditions[?(@.type=="Ready")].status', ["True"]),
        (".conditions[?(@.type=='Other')].status", ["False"]),
        (".conditions[?(@.n>2)].type", ["Ready"]),
        (".conditions[?(@.n)].type", ["Ready"]),
        (".missing.deep[0]", []),
        (".conditions[*].type", ["Ready", "Other"]),
    ],
)
def test_a_json_path_finds(path, found):
    assert find(DOCUMENT, compile_path(path)) == found


@pytest.mark.parametrize("path", [".a[", ".a[x]", ".a[?(x)]", ".a[?(@.b==)]", "." + "a" * 5000])
def test_a_path_nobody_understands_leaves_its_column_empty(path):
    with pytest.raises(PathError):
        compile_path(path)

    columns = [{"name": "X", "type": "string", "jsonPath": path}]
    assert table_for(VOLCANO[0], [DOCUMENT], crd_columns=columns, now=NOW)["rows"][0]["cells"] == ["", None]


@given(st.text(".[]()?@'\"ab=<>:*-1\\ {}$", max_size=20))
def test_any_text_is_a_path_or_is_not(path):
    try:
        find(DOCUMENT, compile_path(path))
    except PathError:
        pass


fields = st.sampled_from(
    ["spec", "status", "metadata", "containers", "conditions", "name", "type", "ports", "containerStatuses", "state",
     "terminated", "waiting", "initContainerStatuses", "template", "selector", "rules", "creationTimestamp"]
)  # fmt: skip
garbage = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=6),
)


@given(st.sampled_from(BUILT_IN), st.dictionaries(fields, garbage))
def test_any_object_has_a_row(resource, obj):
    table = table_for(resource, [obj], now=NOW)

    assert len(table["rows"][0]["cells"]) == len(table["columnDefinitions"])
