"""Who submitted a job: written by admission, never taken from the user, kept for what controllers make."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from volcano.admission.chain import AdmissionChain
from volcano.admission.review import CONTROLLER_USERS
from volcano.admission.submitters import UNCHANGEABLE
from volcano.api import batch, flow, scheduling
from volcano.api.jobs.estimates import SUBMITTER_KEY
from volcano.api.meta import JSON, ObjectMeta
from volcano.api.scheme import resource_type
from volcano.machinery.admission import CREATE, UPDATE, Attributes
from volcano.machinery.transport import User
from volcano.machinery.world import frozen_world

WORLD = frozen_world(
    scheduling.Queue(metadata=ObjectMeta(name="default"),
                     status=scheduling.QueueStatus(state="Open")),
    now=datetime(2026, 1, 1, tzinfo=UTC),
)  # fmt: skip
JOB: JSON = {
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {"tasks": [{"name": "w", "replicas": 1, "template": {"spec": {
        "restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}}}]},
}  # fmt: skip
CRON: JSON = {"metadata": {"name": "c"}, "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": JOB["spec"]}}}
FLOW: JSON = {"metadata": {"name": "f"}, "spec": {"flows": [{"name": "a"}]}}
GROUP: JSON = {"metadata": {"name": "g", "namespace": "default"}, "spec": {"minMember": 1}}
KINDS = [(batch.Job, JOB), (batch.CronJob, CRON), (flow.JobFlow, FLOW), (scheduling.PodGroup, GROUP)]


def with_submitter(body: JSON, name: str) -> JSON:
    return {**body, "metadata": {**body["metadata"], "annotations": {SUBMITTER_KEY: name, "other": "kept"}}}


def mutated(kind: type, body: JSON, user: str) -> dict[str, str]:
    attributes = Attributes(CREATE, resource_type(kind), namespace="default", object=body, user=User(user))
    outcome = AdmissionChain().mutate(attributes, WORLD)
    assert outcome.is_allowed, outcome.message
    assert outcome.object is not None
    return outcome.object["metadata"].get("annotations") or {}


@pytest.mark.parametrize(("kind", "body"), KINDS, ids=lambda each: getattr(each, "__name__", ""))
def test_the_creator_is_written(kind: type, body: JSON):
    assert mutated(kind, body, "ada")[SUBMITTER_KEY] == "ada"


@pytest.mark.parametrize(("kind", "body"), KINDS, ids=lambda each: getattr(each, "__name__", ""))
def test_another_name_is_replaced(kind: type, body: JSON):
    found = mutated(kind, with_submitter(body, "eve"), "ada")

    assert found == {SUBMITTER_KEY: "ada", "other": "kept"}


@pytest.mark.parametrize("controller", CONTROLLER_USERS)
def test_what_controllers_write_is_kept(controller: str):
    assert mutated(batch.Job, with_submitter(JOB, "ada"), controller)[SUBMITTER_KEY] == "ada"


def updated(kind: type, new: JSON, old: JSON, user: str = "eve") -> Attributes:
    return Attributes(
        UPDATE, resource_type(kind), name="train", namespace="default", object=new, old=old, user=User(user)
    )


@pytest.mark.parametrize(("kind", "body"), KINDS, ids=lambda each: getattr(each, "__name__", ""))
def test_an_update_cannot_name_another_submitter(kind: type, body: JSON):
    forged, nobody = with_submitter(body, "eve"), with_submitter(body, "")
    for new, old in ((forged, with_submitter(body, "ada")), (forged, body), (forged, nobody)):
        outcome = AdmissionChain(in_process=True).review(updated(kind, new, old), WORLD)

        assert UNCHANGEABLE in outcome.denial


@pytest.mark.parametrize("left", [{}, {"annotations": {}}, {"annotations": {SUBMITTER_KEY: ""}}])
@pytest.mark.parametrize(("kind", "body"), KINDS, ids=lambda each: getattr(each, "__name__", ""))
def test_an_update_that_leaves_the_annotation_out_leaves_it_as_it_is(kind: type, body: JSON, left: JSON):
    new = {**body, "metadata": {**body["metadata"], **left}}

    outcome = AdmissionChain(in_process=True).review(updated(kind, new, with_submitter(body, "ada")), WORLD)

    assert outcome.is_allowed, outcome.message
    assert outcome.object is not None
    assert outcome.object["metadata"]["annotations"] == {SUBMITTER_KEY: "ada"}


@pytest.mark.parametrize(("kind", "body"), KINDS[:3], ids=lambda each: getattr(each, "__name__", ""))
def test_a_webhook_refuses_to_leave_it_out(kind: type, body: JSON):
    outcome = AdmissionChain().review(updated(kind, body, with_submitter(body, "ada")), WORLD)

    assert UNCHANGEABLE in outcome.denial


@pytest.mark.parametrize("controller", CONTROLLER_USERS)
def test_controllers_may_write_it_later(controller: str):
    attributes = updated(scheduling.PodGroup, with_submitter(GROUP, "ada"), GROUP, controller)

    assert AdmissionChain(in_process=True).review(attributes, WORLD).is_allowed
