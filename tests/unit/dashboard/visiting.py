"""A visitor of the dashboard of a system on virtual time: requests as a browser sends them, without sockets."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

import msgspec

from volcano.api.meta import JSON
from volcano.dashboard.application import Dashboard, DashboardSettings
from volcano.dashboard.callers import Caller
from volcano.dashboard.logins import TokenLogin
from volcano.dashboard.sessions import OneTimeToken
from volcano.dashboard.watched import Watched
from volcano.dashboard.web import BadWebRequest, WebRequest, _pairs
from volcano.machinery.ids import SeededIds
from volcano.machinery.transport import Response, User
from volcano.testing.system import VirtualSystem

ADMIN = User("root", ("system:masters", "system:authenticated"))
HOST = "localhost:8480"


def dashboard_of(system: VirtualSystem, user: User = ADMIN) -> tuple[Dashboard, OneTimeToken]:
    """The dashboard, and the link of which signs this user in."""
    clock, whole = system.clock, system.system
    own = whole.client("dashboard")
    link = OneTimeToken(SeededIds(7))
    settings = DashboardSettings(
        port=8480,
        hosts=frozenset({"localhost"}),
        owner=lambda: Caller(user.name, user.groups, whole.client_of(user, "dashboard"), clock),
    )
    login = TokenLogin(own, clock, lambda token, found: whole.client_of(found, "dashboard"))
    return Dashboard(Watched(own, clock), login, clock, SeededIds(8), settings, link=link), link


class Visitor:
    def __init__(self, dashboard: Dashboard) -> None:
        self.dashboard = dashboard
        self.cookie = ""

    async def get(self, address: str, **headers: str) -> Response:
        return await self._send("GET", address, {}, headers)

    async def post(self, address: str, form: dict[str, str], **headers: str) -> Response:
        return await self._send("POST", address, form, headers)

    async def text(self, address: str) -> str:
        answer = await self.get(address)
        assert answer.status == 200, (address, answer.status, answer.body)
        return answer.body.decode()

    async def json(self, address: str) -> Any:
        return msgspec.json.decode((await self.get(address)).body)

    async def sign_in(self, token: str) -> Response:
        answer = await self.get(f"/login?token={token}")
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        return answer

    async def secret(self) -> str:
        found = re.search(r'name="secret" value="(\w+)"', await self.text("/jobs"))
        assert found is not None
        return found[1]

    async def _send(self, method: str, address: str, form: dict[str, str], more: dict[str, str]) -> Response:
        parts = urlsplit(address)
        headers = {"host": HOST, "cookie": self.cookie, **{name.replace("_", "-"): text for name, text in more.items()}}
        request = WebRequest(method, parts.path, _pairs(parts.query), form, headers, "127.0.0.1")
        try:
            return await self.dashboard.answer(request)
        except BadWebRequest as error:
            return Response(error.status, {}, str(error).encode())


async def signed_in(system: VirtualSystem, user: User = ADMIN) -> Visitor:
    dashboard, link = dashboard_of(system, user)
    visitor = Visitor(dashboard)
    answer = await visitor.sign_in(link.current)
    assert answer.status == 303
    return visitor


def job(name: str, *, namespace: str = "default", pods: int = 2, cpu: str = "1", **metadata: Any) -> JSON:
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    task = {"name": "worker", "replicas": pods, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"minAvailable": pods, "queue": "default", "tasks": [task]},
    }
