"""vcctl queue, jobflow, jobtemplate and pod, against the embedded server."""

import json
from pathlib import Path

import pytest
import yaml

from volcano.api.meta import Key
from volcano.api.scheme import find_resource_type

ROOT = Path(__file__).resolve().parents[3]
SCHEDULING = "scheduling.volcano.sh"
FLOW = "flow.volcano.sh"


def a_group(name, queue, phase=""):
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"queue": queue, "minMember": 1}}
    return body | ({"status": {"phase": phase}} if phase else {})


# -- queues -------------------------------------------------------------------------------------------------------
def test_queues_are_created_listed_and_deleted(call, server):
    assert call("vcctl queue create -n q1 -w 3").out == ""
    server.set_status(SCHEDULING, "Queue", Key("", "q1"), {"state": "Open"})
    for name, phase in (("a", "Inqueue"), ("b", "Running"), ("c", "Running"), ("d", "")):
        server.create(SCHEDULING, "PodGroup", a_group(name, "q1", phase))

    out = call("vcctl queue list").out

    assert out == (
        "Name                     Weight  State   Parent  Inqueue Pending Running Unknown Completed\n"
        "q1                       3       Open            1       0       2       0       0       \n"
    )
    assert call("vcctl queue get -n q1").out == out
    assert call("vcctl queue delete -n q1").code == 0
    assert server.items(SCHEDULING, "Queue") == []


def test_vqueues_shows_the_counters_of_the_status(call, server):
    call("vcctl queue create -n q1")
    server.set_status(SCHEDULING, "Queue", Key("", "q1"), {"state": "Open", "running": 2})

    assert call("vqueues").out == (
        "Name                     Weight  State   Inqueue Pending Running Unknown \n"
        "q1                       1       Open    0       0       2       0       \n"
    )
    assert call("vqueues -n q1").out == call("vqueues").out


def test_operate_opens_closes_and_updates(call, server):
    made = server.create(SCHEDULING, "Queue", {"metadata": {"name": "q1"}})

    assert call("vcctl queue operate -n q1 -a close").out == ""
    assert call("vcctl queue operate -n q1 -a update -w 7").out == ""

    (command,) = server.items("bus.volcano.sh", "Command", "default")
    assert command["action"] == "CloseQueue"
    assert command["metadata"]["generateName"] == "q1-closequeue-"
    assert command["target"]["uid"] == made["metadata"]["uid"]
    assert server.get(SCHEDULING, "Queue", Key("", "q1"))["spec"]["weight"] == 7


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("vcctl queue operate", "Failed to operate queue: queue name must be specified\n"),
        ("vcctl queue operate -n q", "Failed to operate queue: action can not be null\n"),
        (
            "vcctl queue operate -n q -a frob",
            "Failed to operate queue: action frob invalid, valid actions are open, close and update\n",
        ),
        ("vcctl queue operate -n q -a update", "the value must be greater than 0"),
        ("vcctl queue delete", "Failed to delete queue: queue name must be specified\n"),
        ("vcctl queue get", "Failed to get queue: name is mandatory to get the particular queue details\n"),
        ("vcctl queue get -n q", 'Failed to get queue: queues.scheduling.volcano.sh "q" not found\n'),
        ("vcctl queue create -n Bad_Name", "Failed to create queue: "),
        ("vqueues -n q", 'Failed to: queues.scheduling.volcano.sh "q" not found\n'),
    ],
)
def test_queue_errors(call, line, says):
    answer = call(line)

    assert says in answer.err
    assert (answer.out, answer.code) == ("", 255)


def test_a_queue_is_created_and_changed_with_every_field(call, server):
    words = "--parent root --capability cpu=64,nvidia.com/gpu=8 --deserved cpu=32 --guarantee cpu=8 --priority 10"

    assert call(f"vcctl queue create team -w 2 {words} --reclaimable=false").code == 0
    spec = server.get(SCHEDULING, "Queue", Key("", "team"))["spec"]
    assert spec["capability"] == {"cpu": "64", "nvidia.com/gpu": "8"}
    assert (spec["parent"], spec["deserved"], spec["guarantee"]) == ("root", {"cpu": "32"}, {"resource": {"cpu": "8"}})
    assert (spec["weight"], spec["priority"], spec["reclaimable"]) == (2, 10, False)

    assert call("vcctl queue update team --weight 3 --deserved cpu=16").code == 0
    changed = server.get(SCHEDULING, "Queue", Key("", "team"))["spec"]
    assert changed == {**spec, "weight": 3, "deserved": {"cpu": "16"}}
    assert "nothing to change" in call("vcctl queue update team").err
    assert call("vcctl queue delete team").code == 0


def test_a_queue_is_created_as_introductions_print_it(call, server):
    assert call("vcctl queue create -n my-queue -w 2").code == 0

    assert server.get(SCHEDULING, "Queue", Key("", "my-queue"))["spec"]["weight"] == 2


def test_the_tree_shows_a_guarantee_without_deserved_as_deserved(call, server):
    assert call("vcctl queue create -n team -w 2 --guarantee cpu=4").code == 0

    shown = call("vcctl queue tree").out

    assert "deserved" not in server.get(SCHEDULING, "Queue", Key("", "team"))["spec"]
    assert "deserved 4, guaranteed 4" in shown[shown.index("team  ") :]


# -- flows --------------------------------------------------------------------------------------------------------
def a_flow_file(tmp_path):
    path = tmp_path / "flows.yaml"
    path.write_text(
        "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: f1}\nspec: {flows: [{name: a}]}\n---\n\n---\n"
        "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobFlow\nmetadata: {name: f2, namespace: kube-system}\n"
        "spec: {flows: [{name: a}], jobRetainPolicy: delete}\n"
    )
    return path


def test_templates_in_the_file_of_a_flow_are_created_with_it(call):
    made = call(f"vcctl jobflow create -f {ROOT / 'examples' / 'jobflow-diamond.yaml'}")

    names = ["fetch", "count", "sort", "report"]
    assert made.out.splitlines() == [
        *(f"Created JobTemplate: default/{name}" for name in names), "Created JobFlow: default/diamond",
    ]  # fmt: skip
    assert made.code == 0


def test_flows_are_created_listed_and_deleted_from_a_file(call, server, tmp_path):
    path = a_flow_file(tmp_path)

    assert (
        call(f"vcctl jobflow create -f {path}").out == "Created JobFlow: default/f1\nCreated JobFlow: kube-system/f2\n"
    )
    again = call(f"vcctl jobflow create -f {path}")
    assert again.out.startswith('Failed to create JobFlow: jobflows.flow.volcano.sh "f1" already exists\n')
    assert again.code == 1
    server.set_status(FLOW, "JobFlow", Key("default", "f1"), {"state": {"phase": "Running"}})
    header, row = call("vcctl jobflow list").out.splitlines()
    assert header.startswith("Name    Namespace    Phase      Age")
    assert row.split()[:3] == ["f1", "default", "Running"]
    assert len(call("vcctl jobflow list --all-namespaces").out.splitlines()) == 3
    assert call("vcctl jobflow get -N f1").out.splitlines()[1].split()[0] == "f1"
    assert (
        call(f"vcctl jobflow delete -f {path}").out == "Deleted JobFlow: default/f1\nDeleted JobFlow: kube-system/f2\n"
    )
    assert call("vcctl jobflow list").out == "No resources found\n"


def test_describe_prints_yaml_or_json_without_managed_fields(call, server, tmp_path):
    call(f"vcctl jobflow create -f {a_flow_file(tmp_path)}")

    described = yaml.safe_load(call("vcctl jobflow describe -N f1").out)
    assert (described["kind"], described["apiVersion"]) == ("JobFlow", "flow.volcano.sh/v1alpha1")
    assert "managedFields" not in described["metadata"]
    text = call("vcctl jobflow describe -N f1 -o json").out
    assert json.loads(text)["metadata"]["name"] == "f1"
    assert text.startswith('{\n  "apiVersion"') and text.endswith("}\n")
    odd = call("vcctl jobflow describe -N f1 -o toml")
    assert (odd.code, odd.out.count("\n")) == (0, 0)
    assert call("vcctl jobtemplate describe").out == ""


def test_templates_have_two_columns(call, tmp_path):
    path = tmp_path / "t.yaml"
    path.write_text(
        "apiVersion: flow.volcano.sh/v1alpha1\nkind: JobTemplate\nmetadata: {name: tpl}\n"
        "spec: {tasks: [{name: a, replicas: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}\n"
    )

    assert call(f"vcctl jobtemplate create -f {path}").out == "Created JobTemplate: default/tpl\n"
    assert call("vcctl jobtemplate list").out == "Name    Namespace    \ntpl     default      \n"
    assert call("vcctl jobtemplate delete -N tpl").out == "Deleted JobTemplate: default/tpl\n"


@pytest.mark.parametrize(
    "line",
    [
        "vcctl jobflow create", "vcctl jobflow create -f none.yaml", "vcctl jobflow delete", "vcctl jobflow get",
        "vcctl jobflow get -N none", "vcctl jobflow delete -N none", "vcctl jobtemplate describe -N none",
    ],
)  # fmt: skip
def test_flow_errors_are_fatal(call, line):
    answer = call(line)

    assert answer.err.startswith("Failed to ")
    assert answer.code == 255


def test_bad_yaml_is_fatal(call, tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text("apiVersion: [")

    assert call(f"vcctl jobflow create -f {path}").code == 255


# -- pods ---------------------------------------------------------------------------------------------------------
def a_pod(name, job="", queue="", annotated="", namespace="default"):
    labels = {k: v for k, v in (("volcano.sh/job-name", job), ("volcano.sh/queue-name", queue)) if v}
    annotations = {"scheduling.volcano.sh/queue-name": annotated} if annotated else {}
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def names(out):
    return [line.split()[0] for line in out.splitlines()[1:]]


def test_pods_are_chosen_by_job_and_queue(call, server):
    for pod in (
        a_pod("b-1", job="b", queue="q1"), a_pod("a-1", job="a", queue="q2"), a_pod("plain"),
        a_pod("annotated", annotated="q1"),
    ):  # fmt: skip
        server.create("", "Pod", pod)

    assert names(call("vcctl pod list").out) == ["a-1", "b-1"]
    assert names(call("vcctl pod list -j a").out) == ["a-1"]
    assert names(call("vcctl pod list -q q1").out) == ["annotated", "b-1"]
    assert names(call("vcctl pod list -j a -q q2").out) == ["a-1"]
    wrong = call("vcctl pod list -j a -q q1")
    assert (wrong.err, wrong.code) == ("Failed to list pod: the input vcjob a does not match the queue q1\n", 255)


def test_pod_rows_look_as_kubectl_shows_them(call, server):
    server.create("", "Pod", a_pod("p", job="j"))
    state = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "name": "c", "restartCount": 3, "ready": False,
             "image": "i", "imageID": ""}  # fmt: skip
    server.set_status("", "Pod", Key("default", "p"), {"phase": "Running", "containerStatuses": [state]})

    header, row = call("vcctl pod list --all-namespaces").out.splitlines()

    assert header.split() == ["Namespace", "Name", "Ready", "Status", "Restart", "Age"]
    assert row.split()[:5] == ["default", "p", "0/1", "CrashLoopBackOff", "3"]
    assert header.index("Name ") == len("default") + 8


# -- nodes --------------------------------------------------------------------------------------------------------
def test_nodes_are_listed_with_what_is_free(call, server):
    amounts = {"cpu": "8", "memory": "16Gi", "pods": "10", "nvidia.com/gpu": "4"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [{"type": "Ready", "status": "True"}]}
    labels = {"zone": "a", "kubernetes.io/os": "linux"}
    server.create("", "Node", {"metadata": {"name": "n1", "labels": labels}, "spec": {"unschedulable": True}})
    server.set_status("", "Node", Key("", "n1"), status)
    resources = {"requests": {"cpu": "2", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "1"}}
    pod = {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "resources": resources}]}
    server.create("", "Pod", {"metadata": {"name": "p", "namespace": "default"}, "spec": pod})
    try:
        header, row = call("vcctl node list").out.splitlines()
    finally:
        server.do(server.client.delete(find_resource_type("", "Node"), Key("", "n1")))

    assert header.split()[:2] == ["NAME", "STATE"]
    assert row.split() == ["n1", "Ready,Drained", "6/8", "15Gi/16Gi", "3/4", "1/10", "zone=a"]
    assert call("vcctl node list -l zone=b").out == "No resources found\n"
