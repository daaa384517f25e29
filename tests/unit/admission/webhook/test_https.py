"""The HTTPS servers: paths, limits and health."""

import ssl

from webhook_site import free_port, site

from volcano.admission.webhook.serving_certificates import Certificates


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
    async with site(tmp_path, health_address=f"127.0.0.1:{health_port}") as webhook:
        answer = await webhook.send("GET", f"https://127.0.0.1:{health_port}/healthz")

    assert answer == (200, b"ok")
