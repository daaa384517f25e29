"""The changes of a rule: made in process, or sent as a JSON patch, they come to the same."""

import pytest

from volcano.admission.review import FieldChange, ReviewAnswer, change
from volcano.machinery.patch import json_patch

CASES = [
    (change("spec", "queue", value="q"),),
    (change("spec", "tasks", value=[{"name": "a"}], operation="replace"),),
    (change("metadata", "annotations", "volcano.sh/a~b", value="1"),),
    (FieldChange(("spec", "gates"), {"name": "g"}, appends=True),),
    (change("more", value={}), change("more", "field", value=1)),
]


@pytest.mark.parametrize("changes", CASES)
def test_changes_in_process_and_as_a_patch_make_the_same_object(changes):
    obj = {"metadata": {"annotations": {}}, "spec": {"tasks": [], "gates": [{"name": "f"}]}}
    answer = ReviewAnswer(changes=changes)

    assert answer.changed(obj) == json_patch(obj, answer.patch)


def test_the_object_and_the_values_stay_as_they_were():
    obj, tolerations = {"spec": {}}, [{"key": "a"}]

    changed = ReviewAnswer(changes=(change("spec", "tolerations", value=tolerations),)).changed(obj)
    changed["spec"]["tolerations"][0]["key"] = "b"

    assert obj == {"spec": {}}
    assert tolerations == [{"key": "a"}]
