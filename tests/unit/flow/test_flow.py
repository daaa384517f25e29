"""A DAG in Python becomes ordinary JobTemplate and JobFlow objects."""

import json

import pytest

from volcano.flow import Flow, FlowError
from volcano.flow.called import main as call


def targets(flow):
    return {each["name"]: each.get("dependsOn", {}).get("targets", []) for each in flow.objects()[-1]["spec"]["flows"]}


def test_arrows_become_dependencies():
    flow = Flow("f")
    first = flow.command("first", ["true"])
    sides = [flow.command(f"side-{i}", ["true"]) for i in range(2)]
    last = flow.command("last", ["true"])

    first >> sides >> last

    assert targets(flow) == {
        "f-first": [], "f-side-0": ["f-first"], "f-side-1": ["f-first"], "f-last": ["f-side-0", "f-side-1"],
    }  # fmt: skip


def test_objects_are_templates_and_a_flow():
    flow = Flow("f", namespace="ns", queue="q", keep_jobs=False)
    flow.command("a", ["echo", "hi"], replicas=3, requests={"cpu": "2"}, env={"X": "1"}, retries=2)

    template, job_flow = flow.objects()

    assert (template["kind"], template["metadata"]) == ("JobTemplate", {"name": "f-a", "namespace": "ns"})
    spec = template["spec"]
    assert (spec["queue"], spec["minAvailable"], spec["maxRetry"]) == ("q", 3, 3)
    container = spec["tasks"][0]["template"]["spec"]["containers"][0]
    assert (container["command"], container["env"]) == (["echo", "hi"], [{"name": "X", "value": "1"}])
    assert job_flow["spec"]["jobRetainPolicy"] == "delete"


@pytest.mark.parametrize("name", ["", "Not_Valid", "x" * 64])
def test_bad_names_are_refused(name):
    with pytest.raises(FlowError):
        Flow(name)


def test_a_cycle_is_refused_and_spelt_out():
    flow = Flow("f")
    a, b = flow.command("a", ["true"]), flow.command("b", ["true"])
    a >> b
    b >> a

    with pytest.raises(FlowError, match="->"):
        flow.objects()


def test_a_step_twice_too_long_or_of_another_flow_is_refused():
    flow, other = Flow("f"), Flow("g")
    step = flow.command("a", ["true"])
    with pytest.raises(FlowError, match="already"):
        flow.command("a", ["true"])
    with pytest.raises(FlowError, match="different flows"):
        step >> other.command("b", ["true"])
    with pytest.raises(FlowError, match="too long"):
        Flow("a-rather-long-flow-name").command("and-a-long-step-name", ["true"])


def test_calls_name_a_function_and_carry_json():
    flow = Flow("f")
    with pytest.raises(FlowError, match="module:name"):
        flow.call("a", "no-colon")
    with pytest.raises(FlowError, match="not JSON"):
        flow.call("b", "m:f", object())
    with pytest.raises(FlowError, match="bytes"):
        flow.call("c", "m:f", "x" * 200_000)


def test_the_called_function_leaves_its_result(tmp_path, monkeypatch, capsys):
    message = tmp_path / "message"
    monkeypatch.setenv("VOLCANO_TERMINATION_LOG", str(message))

    assert call(["math:hypot", json.dumps({"arguments": [3, 4], "named": {}})]) == 0

    assert json.loads(message.read_text()) == 5.0
    assert call(["builtins:list", json.dumps({"arguments": ["x" * 5000], "named": {}})]) == 1
