"""Kubernetes' own Jobs as `volcano run` shows them."""

import msgspec
import pytest

from volcano.api.core import BatchJob, Pod
from volcano.api.meta import Key
from volcano.cli.live.batch_jobs import owner_of, real_key, shown_job, shown_key

UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available: 1 Insufficient cpu"}


def a_job(spec, **status):
    return msgspec.convert({"metadata": {"name": "pi", "namespace": "ns"}, "spec": spec, "status": status}, BatchJob)


def a_pod(phase, *conditions, api_version="batch/v1"):
    owner = {"apiVersion": api_version, "kind": "Job", "name": "pi", "uid": "u", "controller": True}
    body = {
        "metadata": {"name": "pi-x", "namespace": "ns", "ownerReferences": [owner]},
        "status": {"phase": phase, "conditions": list(conditions)},
    }
    return msgspec.convert(body, Pod)


def ended(kind, message=""):
    return {"conditions": [{"type": kind, "status": "True", "message": message}]}


@pytest.mark.parametrize(
    ("job", "pods", "phase", "message"),
    [
        (a_job({}), [], "Pending", ""),
        (a_job({}), [a_pod("Pending", UNSCHEDULABLE)], "Pending", UNSCHEDULABLE["message"]),
        (a_job({}), [a_pod("Pending"), a_pod("Running")], "Running", ""),
        (a_job({"suspend": True}), [], "Pending", "it is suspended (spec.suspend)"),
        (a_job({}, **ended("Complete")), [a_pod("Succeeded")], "Completed", ""),
        (a_job({}, **ended("Failed", "backoff limit")), [a_pod("Failed")], "Failed", "backoff limit"),
        (a_job({}, conditions=[{"type": "Failed", "status": "False"}]), [], "Pending", ""),
    ],
)
def test_phases_and_reasons(job, pods, phase, message):
    state = shown_job(job, pods).status.state

    assert (state.phase, state.message) == (phase, message)


@pytest.mark.parametrize(
    ("spec", "replicas"),
    [({}, 1), ({"completions": 5, "parallelism": 2}, 5), ({"parallelism": 3}, 3), ({"completions": 0}, 0)],
)
def test_it_wants_its_completions_or_else_as_many_as_run_at_once(spec, replicas):
    assert shown_job(a_job(spec), []).spec.tasks[0].replicas == replicas


def test_its_name_is_no_name_of_a_job_of_volcanos():
    key = Key("ns", "pi")

    assert shown_job(a_job({}), []).key == shown_key(key) == Key("ns", "pi (batch/v1)")
    assert real_key(shown_key(key)) == key and real_key(key) is None


def test_only_kubernetes_own_jobs_are_owners():
    assert owner_of(a_pod("Running")) == Key("ns", "pi")
    assert owner_of(a_pod("Running", api_version="batch.volcano.sh/v1alpha1")) is None
