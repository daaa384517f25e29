"""Reviews: what the webhook answers, over real HTTPS, against the embedded API server."""

import base64

import msgspec
import pytest
from webhook_site import QUEUES, a_job, a_review, open_queue, site

from volcano.admission.webhook.reviews import read_review
from volcano.api.meta import Key


async def test_a_mutation_is_a_json_patch(tmp_path):
    async with site(tmp_path) as webhook:
        response = await webhook.ask("/jobs/mutate", a_job())

    patch = msgspec.json.decode(base64.b64decode(response["patch"]))
    assert (response["uid"], response["allowed"], response["patchType"]) == ("u-1", True, "JSONPatch")
    assert {"op": "add", "path": "/spec/schedulerName", "value": "volcano"} in patch


async def test_a_denial_carries_only_a_message(tmp_path):
    async with site(tmp_path) as webhook:
        response = await webhook.ask("/jobs/validate", a_job(tasks=[]))

    assert response == {"uid": "u-1", "allowed": False, "status": {"message": "No task specified in job spec"}}


async def test_warnings_are_passed_on(tmp_path):
    async with site(tmp_path) as webhook:
        await open_queue(webhook.client)

        response = await webhook.ask("/jobs/validate", a_job(plugins={"ssh": ["--no-root"]}))

    assert response["allowed"] is True
    assert "--no-root" in response["warnings"][0]


async def test_a_queue_made_a_moment_ago_is_known(tmp_path):
    async with site(tmp_path) as webhook:
        for number in range(5):
            await open_queue(webhook.client, f"q{number}")
            response = await webhook.ask("/jobs/validate", a_job(queue=f"q{number}"))
            assert response["allowed"], response


async def test_a_parent_can_be_deleted_right_after_its_child(tmp_path):
    async with site(tmp_path) as webhook:
        await open_queue(webhook.client, "p")
        await open_queue(webhook.client, "child", parent="p")
        before = await webhook.ask("/queues/validate", None, None, operation="DELETE", name="p")
        await webhook.client.delete(QUEUES, Key("", "child"))
        after = await webhook.ask("/queues/validate", None, None, operation="DELETE", name="p")

    assert "1 child queues: child" in before["status"]["message"]
    assert after["allowed"] is True


async def test_the_wrong_resource_and_the_wrong_operation_are_denied(tmp_path):
    async with site(tmp_path) as webhook:
        wrong = a_review("/queues/validate", {"metadata": {"name": "q"}})
        _, body = await webhook.post("/jobs/validate", wrong)
        deletion = await webhook.ask("/jobs/validate", a_job(), operation="DELETE")

    assert "expect resource to be jobs.batch.volcano.sh" in msgspec.json.decode(body)["response"]["status"]["message"]
    assert "expect operation" in deletion["status"]["message"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"request": 5}', b'{"apiVersion": "admission.k8s.io/v1beta1", "request": {}}']
)
async def test_what_is_no_review_is_denied_with_the_reason(tmp_path, body):
    async with site(tmp_path) as webhook:
        status, reply = await webhook.post("/jobs/validate", body)

    assert status == 200
    assert msgspec.json.decode(reply)["response"]["allowed"] is False


async def test_an_undecodable_object_is_denied_with_the_decoding_error(tmp_path):
    async with site(tmp_path) as webhook:
        response = await webhook.ask("/jobs/validate", {"spec": {"tasks": "many"}})

    assert "cannot decode the Job" in response["status"]["message"]


def test_a_review_is_read_whole():
    review = a_review(
        "/jobs/validate",
        {"a": 1},
        {"b": 2},
        operation="UPDATE",
        name="n",
        namespace="ns",
        dryRun=True,
        subResource="status",
    )

    uid, attributes = read_review(msgspec.json.encode(review))

    assert (uid, attributes.operation, attributes.name, attributes.namespace) == ("u-1", "UPDATE", "n", "ns")
    assert (attributes.object, attributes.old, attributes.dry_run, attributes.subresource) == (
        {"a": 1},
        {"b": 2},
        True,
        "status",
    )
