"""`volcano webhook-manager`: over real HTTPS on this machine, against the embedded API server."""

import asyncio
import base64
import contextlib
import socket
import ssl
from datetime import timedelta
from pathlib import Path

import aiohttp
import click
import msgspec
import pytest
import trustme
from click.testing import CliRunner

from volcano.admission.chain import ALL_PATHS, BY_PATH, DEFAULT_PATHS
from volcano.admission.review import Settings
from volcano.admission.webhook.registration import Location, RegistrationError, configuration, register
from volcano.admission.webhook.reviews import read_review
from volcano.admission.webhook.serving_certificates import CertificateError, CertificateFiles, Certificates, made_files
from volcano.api.batch import Job
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.app.webhook_command import (
    WebhookOptions,
    WebhookService,
    options_from,
    parse_paths,
    webhook_manager_command,
)
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock, VirtualClock, run_virtually
from volcano.machinery.transport import InProcess, User

JOBS, QUEUES = resource_type(Job), resource_type(Queue)
TEMPLATE = {"spec": {"containers": [{"name": "c", "image": "busybox"}]}}
DEADLINE = 20


def a_review(path, new=None, old=None, *, operation="CREATE", **more):
    row = BY_PATH[path].resource
    resource = {"group": row.group, "version": row.version, "resource": row.plural}
    request = {
        "uid": "u-1",
        "resource": resource,
        "kind": {"kind": row.kind},
        "operation": operation,
        "object": new,
        "oldObject": old,
    }
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {**request, **more}}


def issued(folder: Path, authority: trustme.CA) -> CertificateFiles:
    folder.mkdir(exist_ok=True)
    pair = authority.issue_cert("localhost", "127.0.0.1")
    files = CertificateFiles(folder / "tls.crt", folder / "tls.key", folder / "ca.crt")
    for path, content in (
        (files.certificate, b"".join(blob.bytes() for blob in pair.cert_chain_pems)),
        (files.key, pair.private_key_pem.bytes()),
        (files.authority, authority.cert_pem.bytes()),
    ):
        aside = path.with_suffix(".new")
        aside.write_bytes(content)
        aside.replace(path)
    return files


def trusting(files: CertificateFiles) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=files.authority.read_text())


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Site:
    """A webhook manager that serves, the API server behind it, and a way to ask."""

    def __init__(self, service, client, files):
        self.service, self.client, self.files = service, client, files

    async def post(self, path, body, **headers):
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        given = {"content-type": "application/json", **headers}
        return await self.send("POST", f"https://127.0.0.1:{self.service.port}{path}", data=data, headers=given)

    async def send(self, method, url, **request):
        connector = aiohttp.TCPConnector(ssl=trusting(self.files))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.request(method, url, **request) as reply,
        ):
            return reply.status, await reply.read()

    async def ask(self, path, *objects, **more):
        status, body = await self.post(path, a_review(path, *objects, **more))
        assert status == 200
        return msgspec.json.decode(body)["response"]


@contextlib.asynccontextmanager
async def site(tmp_path, *, paths=ALL_PATHS, **options):
    clock, store = SystemClock(), MemoryStore()
    server = ApiServer(store, clock=clock)
    await server.start()
    client = Client(InProcess(server.handle, User("webhook", ("system:masters",))))
    files = issued(tmp_path / "tls", trustme.CA())
    port = free_port()
    location = Location(namespace="volcano-system", url=f"https://127.0.0.1:{port}")
    service = WebhookService(
        client,
        clock,
        WebhookOptions(location=location, paths=paths, files=files, host="127.0.0.1", port=port, **options),
    )
    running = asyncio.ensure_future(service.run())
    try:
        ready = asyncio.ensure_future(service.ready.wait())
        await asyncio.wait({ready, running}, timeout=DEADLINE, return_when=asyncio.FIRST_COMPLETED)
        if running.done():
            running.result()
        assert service.ready.is_set()
        yield Site(service, client, files)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.close()


async def open_queue(client, name="default", **spec):
    row = resource_type(Queue)
    await client.create(row, {"metadata": {"name": name}, "spec": {"weight": 1, **spec}})
    await client.patch(row, Key("", name), {"status": {"state": "Open"}}, subresource="status")


def a_job(**spec):
    return {
        "metadata": {"name": "j", "namespace": "default"},
        "spec": {"queue": "default", "tasks": [{"name": "t", "replicas": 1, "template": TEMPLATE}], **spec},
    }


# -- answers ------------------------------------------------------------------------------------------------------
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


# -- the protocol's edges -----------------------------------------------------------------------------------------
async def test_a_body_over_3_mib_is_refused(tmp_path):
    async with site(tmp_path) as webhook:
        status, _ = await webhook.post("/jobs/validate", b" " * (3 * 1024 * 1024 + 1))

    assert status == 413


async def test_a_chunked_body_over_3_mib_is_refused_too(tmp_path):
    async def chunks():
        for _ in range(4):
            yield b" " * 1024 * 1024

    async with site(tmp_path) as webhook:
        url = f"https://127.0.0.1:{webhook.service.port}/jobs/validate"
        status, _ = await webhook.send("POST", url, data=chunks(), headers={"content-type": "application/json"})

    assert status == 413


async def test_another_content_type_gets_an_empty_answer(tmp_path):
    async with site(tmp_path) as webhook:
        assert await webhook.post("/jobs/validate", b"{}", **{"content-type": "text/plain"}) == (200, b"")


async def test_only_enabled_paths_are_served(tmp_path):
    async with site(tmp_path, paths=("/queues/validate",)) as webhook:
        status, _ = await webhook.post("/jobs/validate", b"{}")

    assert status == 404


async def test_only_posts_are_answered(tmp_path):
    async with site(tmp_path) as webhook:
        status, _ = await webhook.send("GET", f"https://127.0.0.1:{webhook.service.port}/jobs/validate")

    assert status == 405


async def test_old_tls_is_not_spoken(tmp_path):
    async with site(tmp_path) as webhook:
        assert Certificates(webhook.files).context.minimum_version == ssl.TLSVersion.TLSv1_2


async def test_health_is_served_over_the_same_tls(tmp_path):
    health_port = free_port()
    async with site(tmp_path, healthz_address=f"127.0.0.1:{health_port}") as webhook:
        answer = await webhook.send("GET", f"https://127.0.0.1:{health_port}/healthz")

    assert answer == (200, b"ok")


# -- certificates -------------------------------------------------------------------------------------------------
def peer(port, files):
    """The serial number of the certificate that a new connection is shown."""
    from cryptography import x509

    plain = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
    with plain, trusting(files).wrap_socket(plain, server_hostname="localhost") as secure:
        return x509.load_der_x509_certificate(secure.getpeercert(binary_form=True)).serial_number


async def test_exchanged_certificates_are_taken_up_without_a_restart(tmp_path, monkeypatch):
    monkeypatch.setattr("volcano.admission.webhook.serving_certificates.LOOK_EVERY", timedelta(milliseconds=20))
    async with site(tmp_path, paths=("/jobs/mutate",)) as webhook:
        before = await asyncio.to_thread(peer, webhook.service.port, webhook.files)
        issued(tmp_path / "tls", trustme.CA())

        async with asyncio.timeout(DEADLINE):
            while True:
                with contextlib.suppress(ssl.SSLError):
                    if await asyncio.to_thread(peer, webhook.service.port, webhook.files) != before:
                        break
            bundle = base64.b64encode(webhook.files.authority.read_bytes()).decode()
            while (await registered(webhook.client, "/jobs/mutate"))["clientConfig"]["caBundle"] != bundle:
                await asyncio.wait_for(asyncio.to_thread(webhook.files.fingerprint), DEADLINE)


def test_a_broken_exchange_leaves_the_certificates_in_use(tmp_path):
    files = issued(tmp_path / "tls", trustme.CA())
    certificates = Certificates(files)
    bundle = certificates.bundle
    files.key.write_text("not a key")

    assert certificates.changed()
    with pytest.raises(CertificateError):
        certificates.load()

    assert certificates.bundle == bundle


def test_missing_files_are_fatal(tmp_path):
    with pytest.raises(CertificateError):
        Certificates(CertificateFiles(tmp_path / "a", tmp_path / "b", tmp_path / "c"))


def test_own_certificates_are_good_for_the_service_and_kept(tmp_path):
    hosts = ["webhook.volcano-system.svc"]

    first = made_files(tmp_path / "pki", hosts, SystemClock())
    content = first.certificate.read_bytes()
    again = made_files(tmp_path / "pki", hosts, SystemClock())

    assert again.certificate.read_bytes() == content
    assert Certificates(first).bundle.startswith(b"-----BEGIN CERTIFICATE-----")


# -- registration -------------------------------------------------------------------------------------------------
async def registered(client, path):
    from volcano.admission.webhook.registration import configuration_name, configuration_type

    found = await client.get_json(configuration_type(BY_PATH[path]), Key("", configuration_name(path)))
    return found["webhooks"][0]


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


def virtually(play):
    async def run():
        clock = VirtualClock()
        server = ApiServer(MemoryStore(), clock=clock)
        await server.start()
        try:
            await play(Client(InProcess(server.handle, User("webhook", ("system:masters",)))), clock)
        finally:
            await server.close()

    run_virtually(run())


def test_what_the_installer_made_is_waited_for_and_only_its_ca_is_changed():
    async def play(client, clock):
        location, path = Location("ns", "svc"), "/queues/validate"
        waiting = asyncio.ensure_future(
            register(client, clock, [path], location=location, bundle=b"new", creates=False)
        )
        await asyncio.sleep(30)
        assert not waiting.done()

        made = configuration(BY_PATH[path], location, b"old")
        made["webhooks"][0]["timeoutSeconds"] = 7
        from volcano.admission.webhook.registration import configuration_type

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


# -- configuration and flags --------------------------------------------------------------------------------------
async def test_the_pod_webhooks_configuration_is_read_again_when_it_changes(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("volcano.app.webhook_command.LOOK_EVERY", timedelta(milliseconds=20))
    file = tmp_path / "admission.yaml"
    file.write_text("# nothing\n")
    pod = {"metadata": {"name": "p", "namespace": "lab"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}

    async with site(tmp_path, configuration=file) as webhook:
        assert "patch" not in await webhook.ask("/pods/mutate", pod)
        file.write_text(
            "resourceGroups: [{resourceGroup: a, object: {key: namespace, value: [lab]}, schedulerName: volcano}]"
        )

        async with asyncio.timeout(DEADLINE):
            while "patch" not in await webhook.ask("/pods/mutate", pod):
                continue
        file.write_text("resourceGroups: 5")
        async with asyncio.timeout(DEADLINE):
            while "keeping the pod webhook's configuration" not in caplog.text:
                await webhook.ask("/pods/mutate", pod)

        assert "patch" in await webhook.ask("/pods/mutate", pod), "a broken file changes nothing"


def flags(**given):
    parameters = webhook_manager_command.make_context("webhook-manager", ["--webhook-url", "https://x"]).params
    return {**parameters, **given}


def test_the_flags_have_the_documented_defaults():
    options = options_from(flags())

    assert options.paths == DEFAULT_PATHS
    assert options.settings == Settings()
    assert (options.port, options.files, options.healthz_address) == (8443, None, "")


def test_the_flags_reach_the_rules():
    options = options_from(
        flags(max_queue_depth=3, enable_root_queue_protection=False, enable_queue_allocated_pods_check=True,
              scheduler_names=("a", "b"), feature_gates="SchedulingGatesQueueAdmission=true")
    )  # fmt: skip

    assert options.settings == Settings(("a", "b"), 3, False, True, True)


@pytest.mark.parametrize(
    "given",
    [
        {"webhook_url": ""},
        {"tls_cert_file": "a"},
        {"graceful_shutdown_time": "soon"},
        {"enabled_admission": "/jobs/mutate,/nope"},
    ],
)
def test_flags_that_make_no_sense_are_refused(given):
    with pytest.raises(click.UsageError):
        options_from(flags(**given))


def test_blank_paths_are_skipped():
    assert parse_paths(" /jobs/mutate, ,/jobs/validate,") == ("/jobs/mutate", "/jobs/validate")
    assert parse_paths("") == ()


def test_help_and_version_are_printed():
    runner = CliRunner()

    assert "--enabled-admission" in runner.invoke(webhook_manager_command, ["--help"]).output
    assert runner.invoke(webhook_manager_command, ["--version"]).exit_code == 0
    assert runner.invoke(webhook_manager_command, ["--port", "0"]).exit_code == 2


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
