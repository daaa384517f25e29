"""The dashboard as a browser sees it: signing in, rights, escaping, safe headers, pages."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from tests.unit.dashboard.visiting import ADMIN, Visitor, dashboard_of, job, signed_in
from volcano.api.batch import Job
from volcano.api.meta import JSON, Key
from volcano.api.scheduling import Queue
from volcano.api.scheme import find_resource_type, resource_type
from volcano.dashboard.pages import PAGES
from volcano.dashboard.sessions import MAX_FAILURES_PER_ADDRESS
from volcano.dashboard.web import SAFE_HEADERS, BadWebRequest, WebApplication
from volcano.machinery.transport import User
from volcano.testing.system import VirtualSystem, on_virtual_time

JOBS = resource_type(Job)
MAX_PAGE_BYTES = 300_000
TINA = User("tina", ("system:authenticated",))


async def allow(system: VirtualSystem, name: str, namespace: str, rules: list[JSON]) -> None:
    """A Role and its binding, or those of the whole cluster where there is no namespace."""
    prefix = "" if namespace else "Cluster"
    role = find_resource_type("rbac.authorization.k8s.io", f"{prefix}Role")
    binding = find_resource_type("rbac.authorization.k8s.io", f"{prefix}RoleBinding")
    assert role is not None and binding is not None
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    await system.client.create(role, {"metadata": metadata, "rules": rules})
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": f"{prefix}Role", "name": name}
    subject = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "tina"}
    await system.client.create(binding, {"metadata": metadata, "roleRef": reference, "subjects": [subject]})


async def namespace(system: VirtualSystem, name: str) -> None:
    row = find_resource_type("", "Namespace")
    assert row is not None
    await system.client.create(row, {"metadata": {"name": name}})


def test_without_a_session_every_page_leads_to_the_sign_in():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        dashboard, _ = dashboard_of(system)
        visitor = Visitor(dashboard)

        page = await visitor.get("/jobs?queue=a")
        data, live = await visitor.get("/api/v1/jobs"), await visitor.get("/live?topics=jobs")
        write = await visitor.post("/jobs/default/a/delete", {})

        assert (page.status, page.headers["location"]) == (303, "/login?next=%2Fjobs%3Fqueue%3Da")
        assert data.status == live.status == 401
        assert write.headers["location"] == "/login"
        await dashboard.close()


def test_a_link_signs_in_once_and_the_cookie_is_out_of_reach_of_scripts_and_other_sites():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        dashboard, link = dashboard_of(system)
        first, second = Visitor(dashboard), Visitor(dashboard)
        token = link.current

        answer = await first.sign_in(token)
        again = await second.sign_in(token)

        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
        assert (await first.get("/")).status == 200
        assert again.status == 401 and "set-cookie" not in again.headers
        assert link.current != token
        await dashboard.close()


def test_wrong_tokens_are_refused_and_after_some_of_them_the_address_has_to_wait():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        dashboard, link = dashboard_of(system)
        visitor = Visitor(dashboard)

        answers = [(await visitor.post("/login", {"token": "guess"})).status for _ in range(MAX_FAILURES_PER_ADDRESS)]
        right = await visitor.get(f"/login?token={link.current}")

        assert set(answers) == {401}
        assert right.status == 429
        await dashboard.close()


def test_a_sign_in_never_leads_to_another_site():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        dashboard, link = dashboard_of(system)
        for place in ("//evil.example/", "https://evil.example/", "/\\evil.example"):
            answer = await Visitor(dashboard).get(f"/login?token={link.current}&next={place}")
            assert answer.headers["location"] == "/"
        await dashboard.close()


def test_a_request_under_another_name_of_the_server_is_refused():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        visitor = await signed_in(system)

        assert (await visitor.get("/", host="rebound.example:8480")).status == 421
        await visitor.dashboard.close()


def test_writes_need_the_secret_of_the_session_and_the_same_origin():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        visitor = await signed_in(system)
        secret = await visitor.secret()

        without = await visitor.post("/logout", {})
        foreign = await visitor.post("/logout", {"secret": secret}, origin="https://evil.example")
        cross = await visitor.post("/logout", {"secret": secret}, sec_fetch_site="cross-site")
        right = await visitor.post("/logout", {"secret": secret}, origin="http://localhost:8480")

        assert without.status == foreign.status == cross.status == 403
        assert right.status == 303
        assert (await visitor.get("/jobs")).status == 303
        await visitor.dashboard.close()


def test_hostile_texts_are_escaped_on_every_page_that_shows_them():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        hostile = "<script>alert(1)</script>"
        body = job("evil", labels={"team": "a"}, annotations={"note": hostile})
        body["spec"]["tasks"][0]["template"]["spec"]["containers"][0]["command"] = [hostile]
        await system.client.create(JOBS, body)
        visitor = await signed_in(system)

        for address in (
            "/jobs/default/evil",
            "/jobs/default/evil/yaml",
            "/jobs/default/evil/events",
            f"/jobs?q={hostile}",
            f"/jobs?group=label:{hostile}",
            f"/jobs?cause={hostile}&state={hostile}&sort={hostile}",
            "/jobs/default/evil/log?pod=<script>",
        ):
            page = await visitor.text(address.replace("<", "%3C").replace(">", "%3E"))
            assert hostile not in page and "<script>" not in page, address
        assert "&lt;script&gt;" in await visitor.text("/jobs/default/evil/yaml")
        await visitor.dashboard.close()


@pytest.mark.parametrize(
    ("path", "media"), [("/api/v1/jobs", "application/json"), ("/jobs", "text/plain; charset=utf-8")]
)
async def test_programs_get_every_refusal_in_json(path: str, media: str):
    sent: list[dict[str, object]] = []

    async def refusing(_request: object) -> object:
        raise BadWebRequest(429, "too many")

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "http.request"}

    scope = {"type": "http", "method": "GET", "path": path, "headers": [], "query_string": b""}
    await WebApplication(refusing)(scope, receive, send)  # type: ignore[arg-type]

    headers = dict(sent[0]["headers"])  # type: ignore[call-overload]
    assert (sent[0]["status"], headers[b"content-type"].decode()) == (429, media)


async def test_every_answer_forbids_scripts_styles_and_frames_of_others():
    sent: list[dict[str, object]] = []

    async def failing(_request: object) -> object:
        raise RuntimeError("planted")

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def receive() -> dict[str, object]:
        return {"type": "http.request"}

    scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    await WebApplication(failing)(scope, receive, send)  # type: ignore[arg-type]

    headers = {name.decode(): value.decode() for name, value in sent[0]["headers"]}  # type: ignore[attr-defined]
    assert sent[0]["status"] == 500 and b"planted" not in sent[1]["body"]  # type: ignore[operator]
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy and "script-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert SAFE_HEADERS.items() <= headers.items()


def test_pages_have_neither_inline_scripts_nor_inline_styles():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.client.create(JOBS, job("a"))
        visitor = await signed_in(system)
        for address in ("/", "/jobs", "/jobs/default/a", "/jobs/default/a/why"):
            page = await visitor.text(address)
            assert " style=" not in page and "<style" not in page and " onclick=" not in page
            assert page.count("<script") == page.count('<script type="module" src="/static/') == 1
            assert "http://" not in page.replace('xmlns="http://www.w3.org/2000/svg"', "") and "https://" not in page
        await visitor.dashboard.close()


def test_a_user_with_few_rights_sees_only_their_namespace():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await namespace(system, "team-a")
        await namespace(system, "team-b")
        await system.client.create(JOBS, job("mine", namespace="team-a"))
        await system.client.create(JOBS, job("theirs", namespace="team-b"))
        await allow(
            system,
            "see",
            "team-a",
            [{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get", "list"]}],
        )
        await system.until(lambda: system.phase("mine", "team-a") == "Running")

        visitor = await signed_in(system, TINA)

        listed = await visitor.json("/api/v1/jobs")
        assert [row["name"] for row in listed["rows"]] == ["mine"]
        assert listed["choices"]["namespace"] == ["team-a"]
        assert "theirs" not in await visitor.text("/") and "theirs" not in await visitor.text("/jobs")
        hidden = await visitor.get("/jobs/team-b/theirs")
        absent = await visitor.get("/jobs/team-b/nothing")
        assert hidden.status == absent.status == 403  # whether it exists is not told either
        assert "You may not list pods" in await visitor.text("/jobs/team-a/mine")
        overview = await visitor.json("/api/v1/overview")
        assert overview["nodes"] == 0 and not overview["seesAllPods"]
        await visitor.dashboard.close()


def test_rights_that_are_taken_away_are_gone_soon():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.client.create(JOBS, job("a"))
        await allow(system, "see", "", [{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["list"]}])
        visitor = await signed_in(system, TINA)
        assert (await visitor.json("/api/v1/jobs"))["total"] == 1

        row = find_resource_type("rbac.authorization.k8s.io", "ClusterRoleBinding")
        assert row is not None
        await system.client.delete(row, Key("", "see"))
        await system.clock.sleep(timedelta(seconds=30))

        assert (await visitor.json("/api/v1/jobs"))["total"] == 0
        await visitor.dashboard.close()


def test_a_page_that_is_known_is_not_sent_again():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        visitor = await signed_in(system)
        first = await visitor.get("/jobs", x_part="main")

        again = await visitor.get("/jobs", x_part="main", if_none_match=first.headers["etag"])

        assert (first.status, again.status, again.body) == (200, 304, b"")
        assert b"<html" not in first.body
        await visitor.dashboard.close()


def test_an_open_page_is_told_when_a_job_changes():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        visitor = await signed_in(system)
        answer = await visitor.get("/live?topics=jobs,unknown")
        assert answer.stream is not None
        stream = answer.stream.__aiter__()
        await stream.__anext__()

        await system.client.create(JOBS, job("a"))
        while (line := await stream.__anext__()).startswith(b":"):
            pass

        assert line == b"event: change\ndata: jobs\n\n"
        await answer.stream.aclose()  # type: ignore[attr-defined]
        await visitor.dashboard.close()


def test_a_job_is_shown_from_waiting_to_completed():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.client.create(JOBS, job("big", cpu="1000"))
        await system.client.create(JOBS, job("small", annotations={"volcano.sh/simulated-duration": "5s"}))
        visitor = await signed_in(system, ADMIN)
        await system.until(lambda: system.phase("small") == "Running")

        page = await visitor.json("/api/v1/jobs/default/small")
        why = await visitor.json("/api/v1/jobs/default/big/why")

        assert page["job"]["state"] == "running" and page["roles"][0]["counts"] == {"Running": 2}
        assert [span["phase"] for span in page["phases"]] == ["Pending", "Running"]
        assert why["answer"]["text"] and why["problem"] == ""
        states = (await visitor.json("/api/v1/overview"))["states"]
        assert (states["waiting"], states["running"]) == (1, 1)
        await visitor.dashboard.close()


def test_a_program_brings_its_token_with_each_request():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.client.create(JOBS, job("a"))
        account = find_resource_type("", "ServiceAccount")
        assert account is not None
        await system.client.create(account, {"metadata": {"name": "bot", "namespace": "default"}})
        key = Key("default", "bot")
        made = await system.client.create_sub(account, key, "token", {"spec": {}})
        token = msgspec.json.decode(made)["status"]["token"]
        dashboard, _ = dashboard_of(system)
        program = Visitor(dashboard)

        listed = await program.get("/api/v1/jobs", authorization=f"Bearer {token}")
        page = await program.get("/jobs", authorization=f"Bearer {token}")
        wrong = await program.get("/api/v1/jobs", authorization="Bearer guess")
        write = await program.post("/api/v1/jobs/default/a/do/delete", {}, authorization=f"Bearer {token}")
        await dashboard.close()

        assert listed.status == 200 and b'"total":0' in listed.body  # this account may list nothing
        assert (page.status, write.status, wrong.status) == (303, 401, 401)


def test_a_thousand_queues_are_shown_in_pages_that_stay_small():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        for number in range(1000):
            body = {"metadata": {"name": f"team-{number:04}"}, "spec": {"weight": 1, "deserved": {"cpu": "1"}}}
            await system.client.create(resource_type(Queue), body)
        visitor = await signed_in(system)

        first, last = await visitor.get("/queues"), await visitor.json("/api/v1/queues?page=99")
        found = await visitor.json("/api/v1/queues?q=TEAM-0999")
        await visitor.dashboard.close()

        assert len(first.body) < MAX_PAGE_BYTES and b"Page 1 of 17" in first.body
        assert (last["total"], last["page"]) == (1002, 17)  # with root and default
        assert [queue["name"] for queue in found["queues"]] == ["team-0999"]


NEEDS_HISTORY = ("/queues/{name}/chart", "/usage", "/usage/chart")
"""Their tests are in test_past_pages.py."""


def test_every_page_is_made_and_stays_small():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.client.create(JOBS, job("a"))
        await system.until(lambda: system.phase("a") == "Running")
        visitor = await signed_in(system)
        node = (await visitor.json("/api/v1/nodes"))["rows"][0]["name"]

        answers = {}
        for page in PAGES:
            address = page.path.replace("{namespace}", "default")
            name = {"/queues": "default", "/nodes": node}.get(address.rpartition("/{name}")[0], "a")
            if "flows/{" in page.path or page.path.endswith("/log") or page.path in NEEDS_HISTORY:
                continue  # there is no flow, simulated pods print nothing, and this system keeps no history
            answers[address] = await visitor.get(address.replace("{name}", name))
        await visitor.dashboard.close()  # before anything is asserted: what it follows would keep the test from ending

        assert {address: answer.status for address, answer in answers.items() if answer.status != 200} == {}
        assert {address for address, answer in answers.items() if len(answer.body) >= MAX_PAGE_BYTES} == set()
