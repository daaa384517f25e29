"""Unknown fields of manifests, with their lines and the nearest field; what is right passes."""

from pathlib import Path

import pytest
import yaml

from volcano.api.manifest_fields import field_problems
from volcano.api.schemas.crds import crd_manifests

ROOT = Path(__file__).parents[3]
JOB = """\
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: j
  lables: {a: b}
spec:
  minAvailabel: 2
  tasks:
    name: t
"""


def test_every_problem_is_reported_with_its_line():
    assert field_problems(JOB, source="job.yaml") == [
        "job.yaml:5: metadata.lables: unknown field; did you mean labels?",
        "job.yaml:7: spec.minAvailabel: unknown field; did you mean minAvailable?",
        "job.yaml:9: spec.tasks: must be a list, not an object",
    ]


@pytest.mark.parametrize(
    ("wrong", "right"),
    [
        ("spec: {queu: a}", "queue"),
        ("spec: {MinAvailable: 1}", "minAvailable"),
        ("spec: {min_available: 1}", "minAvailable"),
        ("spec: {shedulerName: v}", "schedulerName"),
        ("spec: {maxRetries: 1}", "maxRetry"),
        ("spec: {ttlSecondAfterFinished: 1}", "ttlSecondsAfterFinished"),
        ("spec: {plugin: {}}", "plugins"),
        ("spec: {policy: []}", "policies"),
        ("spec: {task: []}", "tasks"),
        ("spec: {volume: []}", "volumes"),
        ("spec: {priorityClass: p}", "priorityClassName"),
        ("spec: {tasks: [{replica: 1}]}", "replicas"),
        ("spec: {tasks: [{tempalte: {}}]}", "template"),
        ("spec: {tasks: [{dependOn: {}}]}", "dependsOn"),
        ("spec: {tasks: [{template: {specs: {}}}]}", "spec"),
        ("spec: {tasks: [{template: {spec: {container: []}}}]}", "containers"),
        ("spec: {tasks: [{template: {spec: {restartPolcy: Never}}}]}", "restartPolicy"),
        ("spec: {tasks: [{template: {spec: {nodeSelectors: {}}}}]}", "nodeSelector"),
        ("spec: {tasks: [{template: {spec: {containers: [{comand: []}]}}}]}", "command"),
        ("spec: {tasks: [{template: {spec: {containers: [{resource: {}}]}}}]}", "resources"),
        ("spec: {tasks: [{template: {spec: {containers: [{resources: {request: {}}}]}}}]}", "requests"),
        ("spec: {tasks: [{template: {spec: {containers: [{volumesMounts: []}]}}}]}", "volumeMounts"),
        ("spec: {policies: [{evnet: PodFailed}]}", "event"),
        ("spec: {policies: [{acton: RestartJob}]}", "action"),
        ("metadta: {}", "metadata"),
        ("metadata: {nmae: j}", "name"),
        ("metadata: {namepsace: x}", "namespace"),
        ("metadata: {anotations: {}}", "annotations"),
        ("sepc: {}", "spec"),
        ("spec: {networkTopolgy: {}}", "networkTopology"),
    ],
)
def test_a_misspelt_field_is_answered_with_the_right_one(wrong, right):
    text = f"apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n{wrong}\n"

    (problem,) = field_problems(text, source="f")

    assert problem.startswith("f:3: ")
    assert problem.endswith(f"did you mean {right}?")


@pytest.mark.parametrize("path", sorted((ROOT / "examples").rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_example_passes(path):
    assert field_problems(path.read_bytes(), source=path.name) == []


def test_kinds_of_kubernetes_are_checked_and_others_pass():
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p, creationTimestamp: null}\nspec: {hostNetwrk: true}\n"
    other = "apiVersion: example.com/v1\nkind: Anything\nspec: {a: 1}\n"

    assert field_problems(f"{pod}---\n{other}", source="f") == [
        "f:4: spec.hostNetwrk: unknown field; did you mean hostNetwork?"
    ]


def test_free_values_and_definitions_pass():
    assert field_problems(yaml.safe_dump_all(crd_manifests()), source="f") == []
    claim = "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, data: {any: thing}}]\n"
    assert field_problems(claim, source="f") == []
