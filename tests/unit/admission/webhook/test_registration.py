"""The webhook configurations: their content, and how they come to have the CA."""

import asyncio
import base64
from datetime import timedelta

import msgspec
import pytest
from webhook_site import JOBS, a_job, open_queue, registered, site, virtually

from volcano.admission.chain import ALL_PATHS, BY_PATH
from volcano.admission.webhook.registration import (
    Location,
    RegistrationError,
    configuration,
    configuration_type,
    register,
)
from volcano.api.errors import ApiError


async def test_all_configurations_are_registered_with_the_ca(tmp_path):
    async with site(tmp_path) as webhook:
        bundle = base64.b64encode(webhook.files.authority.read_bytes()).decode()
        found = {path: await registered(webhook.client, path) for path in ALL_PATHS}

    assert {entry["clientConfig"]["caBundle"] for entry in found.values()} == {bundle}
    assert found["/jobs/mutate"]["clientConfig"]["url"] == f"https://127.0.0.1:{webhook.service.port}/jobs/mutate"


def test_a_configuration_says_what_the_reference_says():
    made = configuration(BY_PATH["/jobs/mutate"], Location("volcano-system", "volcano-admission-service"), b"ca")
    hypernodes = configuration(BY_PATH["/hypernodes/validate"], Location("volcano-system", "s"), b"ca")["webhooks"][0]

    assert made == {
        "metadata": {"name": "volcano-admission-service-jobs-mutate"},
        "webhooks": [
            {
                "name": "mutatejob.volcano.sh",
                "admissionReviewVersions": ["v1"],
                "clientConfig": {
                    "caBundle": "Y2E=",
                    "service": {
                        "name": "volcano-admission-service",
                        "namespace": "volcano-system",
                        "path": "/jobs/mutate",
                        "port": 443,
                    },
                },
                "failurePolicy": "Fail",
                "matchPolicy": "Equivalent",
                "rules": [
                    {
                        "apiGroups": ["batch.volcano.sh"],
                        "apiVersions": ["v1alpha1"],
                        "operations": ["CREATE"],
                        "resources": ["jobs"],
                        "scope": "*",
                    }
                ],
                "sideEffects": "NoneOnDryRun",
                "timeoutSeconds": 10,
                "namespaceSelector": {
                    "matchExpressions": [
                        {
                            "key": "kubernetes.io/metadata.name",
                            "operator": "NotIn",
                            "values": ["kube-system", "volcano-system"],
                        }
                    ]
                },
                "reinvocationPolicy": "Never",
            }
        ],
    }
    assert hypernodes["sideEffects"] == "None"
    assert "namespaceSelector" not in hypernodes


def test_what_the_installer_made_is_waited_for_and_only_its_ca_is_changed():
    async def play(client, clock):
        location, path = Location("ns", "svc"), "/queues/validate"
        waiting = asyncio.ensure_future(
            register(client, clock, [path], location=location, bundle=b"new", creates=False)
        )
        await clock.sleep(timedelta(seconds=30))
        assert not waiting.done()

        made = configuration(BY_PATH[path], location, b"old")
        made["webhooks"][0]["timeoutSeconds"] = 7
        await client.create(configuration_type(BY_PATH[path]), made)
        await waiting

        entry = await registered(client, path)
        assert (entry["clientConfig"]["caBundle"], entry["timeoutSeconds"]) == ("bmV3", 7)

    virtually(play)


def test_what_never_appears_is_an_error_after_five_minutes():
    async def play(client, clock):
        started = clock.now()
        with pytest.raises(RegistrationError, match="did not appear"):
            await register(
                client, clock, ["/queues/validate"], location=Location("ns", "svc"), bundle=b"x", creates=False
            )
        assert (clock.now() - started).total_seconds() == 300

    virtually(play)


async def test_the_api_server_asks_the_webhook(tmp_path):
    async with site(tmp_path) as webhook:
        await open_queue(webhook.client)

        stored = msgspec.json.decode(await webhook.client.create(JOBS, a_job()))
        with pytest.raises(ApiError, match=r'admission webhook "validatejob.volcano.sh" denied the request: .*ghost'):
            await webhook.client.create(
                JOBS, {**a_job(queue="ghost"), "metadata": {"name": "k", "namespace": "default"}}
            )

    assert stored["spec"]["schedulerName"] == "volcano"
