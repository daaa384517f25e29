"""/jobflows/validate: a JobFlow is a DAG of steps that are there."""

import pytest
from admission_builders import refusal


def a_flow(**steps):
    flows = [
        {"name": name, "dependsOn": {"targets": targets}} if targets else {"name": name}
        for name, targets in steps.items()
    ]
    return {"kind": "JobFlow", "metadata": {"name": "f", "namespace": "ns"}, "spec": {"flows": flows}}


@pytest.mark.parametrize(
    "flow",
    [
        a_flow(),
        {"kind": "JobFlow", "metadata": {"name": "f"}},
        a_flow(a=[], b=["a"], c=["a"], d=["b", "c"]),
        a_flow(a=["b"], b=[]),
    ],
)
def test_a_dag_is_admitted(flow):
    assert refusal(flow) == ""


def test_a_cycle_is_spelled_out():
    message = refusal(a_flow(start=["a"], a=["b"], b=["c"], c=["a"]))

    assert "jobflow Flow is not DAG" in message
    assert "a -> b -> c -> a" in message


def test_a_step_that_waits_for_itself_is_a_cycle():
    assert "jobflow Flow is not DAG" in refusal(a_flow(a=["a"]))


def test_an_unknown_target_is_named():
    message = refusal(a_flow(a=["ghost"]))

    assert "jobflow Flow is not DAG" in message
    assert "vertex is not defined: ghost" in message


def test_of_two_steps_of_a_name_the_later_counts():
    flow = a_flow(a=["ghost"])
    flow["spec"]["flows"].append({"name": "a"})

    assert refusal(flow) == ""


def test_a_flow_is_checked_on_update_too():
    assert "not DAG" in refusal(a_flow(a=["a"]), a_flow(a=[]))
