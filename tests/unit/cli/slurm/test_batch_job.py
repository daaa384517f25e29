"""The Job that a script becomes."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.cli.slurm.batch_job import Submission, batch_job, exported, read_request
from volcano.cli.slurm.options import OptionRefused, of_command_line, settled

WHERE = Submission(directory="/home/me/work", user="me", host="login", environment={})


def job(*words: str, index: int | None = None) -> dict[str, Any]:
    request = read_request(settled(of_command_line(words)[0])[0], "script.sh")
    return batch_job(
        request, "#!/bin/sh\necho $$\n", ["a"], WHERE, number=12, index=index, array_number=10 if index else 0
    )


def pod(body: dict[str, Any], task: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = body["spec"]["tasks"][task]["template"]["spec"]
    return found


def variables(body: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in pod(body)["containers"][0]["env"]}


def amounts(body: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = pod(body)["containers"][0]["resources"]["requests"]
    return found


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("-n 4 -c 2 --mem=1G", {"cpu": "8", "memory": "1048576Ki"}),
        ("--mem-per-cpu=100M -c4", {"cpu": "4", "memory": "409600Ki"}),
        ("--gres=gpu:2", {"cpu": "1", "nvidia.com/gpu": "2"}),
        ("-G 4 -N 2", {"cpu": "1", "nvidia.com/gpu": "2"}),
        ("--gpus-per-task=1 -n 2", {"cpu": "2", "nvidia.com/gpu": "2"}),
    ],
)
def test_what_is_requested(words: str, wanted: dict[str, str]) -> None:
    assert amounts(job(*words.split())) == wanted


def test_names_queue_time_limit_and_files() -> None:
    body = job("-J", "My Job", "-p", "fast", "-t", "10", "-o", "%x-%j.out", "-D", "sub")

    assert (body["metadata"]["name"], body["spec"]["queue"]) == ("my-job-12", "fast")
    assert body["metadata"]["annotations"]["volcano.sh/running-estimate"] == "10m0s"
    assert pod(body)["activeDeadlineSeconds"] == 600
    found = variables(body)
    assert (found["VSUB_CHDIR"], found["VSUB_OUTPUT"]) == ("/home/me/work/sub", "/home/me/work/sub/My Job-12.out")
    assert found["VSUB_SCRIPT"] == "#!/bin/sh\necho $$$$\n"  # Kubernetes makes $$ of it


def test_the_variables_of_an_array_and_its_file() -> None:
    found = variables(job("--array=2-8:3%2", index=5))

    assert {name.removeprefix("SLURM_ARRAY_"): value for name, value in found.items() if "ARRAY" in name} == {
        "JOB_ID": "10", "TASK_ID": "5", "TASK_COUNT": "3", "TASK_MIN": "2", "TASK_MAX": "8", "TASK_STEP": "3",
    }  # fmt: skip
    assert found["VSUB_OUTPUT"] == "/home/me/work/slurm-10_5.out"


def test_several_nodes_are_a_gang_that_ends_with_the_script() -> None:
    body = job("-N", "3", "-n", "5")

    assert body["spec"]["minAvailable"] == 3
    assert [(task["name"], task["replicas"]) for task in body["spec"]["tasks"]] == [("batch", 1), ("node", 2)]
    assert variables(body)["SLURM_JOB_NODELIST"] == ("script-sh-12-batch-0,script-sh-12-node-0,script-sh-12-node-1")
    assert variables(body)["SLURM_TASKS_PER_NODE"] == "2(x2),1"


def test_nodes_are_chosen_by_name_and_by_label() -> None:
    terms = pod(job("-w", "n[1-2]", "-C", "ssd&zone=a"))["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]

    assert [each["matchExpressions"] for each in terms] == [
        [
            {"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", "n2"]},
            {"key": "ssd", "operator": "Exists"},
            {"key": "zone", "operator": "In", "values": ["a"]},
        ]
    ]


def test_the_environment_is_taken_along_but_not_what_looks_like_a_secret() -> None:
    environment = {"COLOUR": "red", "AWS_SECRET_ACCESS_KEY": "x", "PWD": "/", "SLURM_JOB_ID": "1"}

    assert exported("ALL", environment) == ({"COLOUR": "red"}, ["AWS_SECRET_ACCESS_KEY"])
    assert exported("NONE", environment) == ({}, [])
    assert exported("COLOUR,SIZE=2", environment) == ({"COLOUR": "red", "SIZE": "2"}, [])
    assert exported("ALL,AWS_SECRET_ACCESS_KEY", environment)[0]["AWS_SECRET_ACCESS_KEY"] == "x"
    with pytest.raises(OptionRefused, match="at most"):
        exported("ALL", {"BIG": "x" * 100_000})
