"""Pod templates get the errors Kubernetes gives them: compared with its recorded answers (tools/oracles)."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.api.pods.validation import validate_pod_annotations, validate_pod_spec, validate_pod_template

CASES = json.loads((Path(__file__).parents[1] / "data/pod_templates.json").read_text())
OBJECT = re.compile(r"^(\w+ value): [{\[].*?[}\]]: (?=[a-zA-Z`])")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"].replace(" ", "-"))
def test_a_template_gets_the_errors_of_kubernetes(case):
    errors = validate_pod_template(case["template"], "template")

    ours = {(error.path, error.reason, OBJECT.sub(r"\1: …: ", error.message)) for error in errors}
    assert sorted(ours) == [tuple(error) for error in case["errors"]]


def test_enough_is_compared():
    assert len(CASES) > 300
    assert sum(not case["errors"] for case in CASES) > 30


def test_a_pod_may_not_bring_ephemeral_containers():
    spec = {"containers": [{"name": "c", "image": "i"}], "ephemeralContainers": [{"name": "e", "image": "i"}]}

    errors = validate_pod_spec(spec, "spec")

    assert [str(error) for error in errors] == ["spec.ephemeralContainers: Forbidden: cannot be set on create"]


def test_a_gated_pod_may_not_name_its_node():
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n1", "schedulingGates": [{"name": "g"}]}

    errors = validate_pod_spec(spec, "spec")

    assert [error.path for error in errors] == ["spec.nodeName"]


def test_the_image_of_a_pod_has_no_blanks_around_it_but_a_templates_may():
    spec = {"containers": [{"name": "c", "image": " i"}]}

    assert [error.path for error in validate_pod_spec(spec, "spec")] == ["spec.containers[0].image"]
    assert validate_pod_spec(spec, "spec", is_pod=False) == []


def test_a_value_of_the_wrong_type_is_an_error_like_any_other():
    errors = validate_pod_spec({"containers": [{"name": 5, "image": "i"}], "volumes": "many"}, "spec")

    assert {error.path for error in errors} >= {"spec.containers[0].name", "spec.volumes"}
    assert 'spec.volumes: Invalid value: "many": must be a list' in map(str, errors)


def test_annotations_that_mean_something_are_checked_with_the_spec():
    errors = validate_pod_annotations({"kubernetes.io/config.mirror": "x"}, {}, "metadata.annotations")

    assert [error.path for error in errors] == ["metadata.annotations[kubernetes.io/config.mirror]"]


def test_the_number_of_errors_has_a_limit():
    spec = {"containers": [{"name": "A", "image": ""} for _ in range(5000)]}

    assert len(validate_pod_spec(spec, "spec")) <= 200


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 70000) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)
PATHS = sorted(
    {tuple(str(part) for part in re.split(r"[.\[]", e[0].replace("]", ""))[1:]) for c in CASES for e in c["errors"]}
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CASES), st.lists(st.tuples(st.sampled_from(PATHS), json_values), min_size=1, max_size=4))
def test_garbage_anywhere_is_an_error_and_never_raises(case, changes):
    template = json.loads(json.dumps(case["template"]))
    for path, value in changes:
        _put(template, path, value)

    errors = validate_pod_template(template, "template")

    assert all(error.path.startswith("template") and error.message for error in errors)


@given(json_values)
def test_any_json_can_be_judged(value):
    assert isinstance(validate_pod_template(value, "t"), list)
    assert isinstance(validate_pod_spec(value, "s"), list)


def _put(target, path, value):
    for i, part in enumerate(path):
        last = i == len(path) - 1
        if isinstance(target, dict):
            if last:
                target[part] = value
                return
            target = target.setdefault(part, {})
        elif isinstance(target, list) and target:
            if last:
                target[0] = value
                return
            target = target[0]
        else:
            return


@pytest.mark.parametrize("text", ["{", "5", "[5]", '"x"', "[[]]"])
def test_tolerations_in_an_annotation_that_cannot_be_read_are_an_error(text):
    metadata = {"annotations": {"scheduler.alpha.kubernetes.io/tolerations": text}}
    template = {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}

    assert validate_pod_template(template, "template") != []
