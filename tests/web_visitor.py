"""WebVisitor: a person at a dashboard that runs as a process: cookies, forms, redirects within the site."""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping
from http.cookies import SimpleCookie
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from tests.running_server import Answer


class WebVisitor:
    def __init__(self, place: str) -> None:
        self.place = urlsplit(place)
        self.cookies: dict[str, str] = {}

    def get(self, path: str, **headers: str) -> Answer:
        return self._send("GET", path, None, headers)

    def post(self, path: str, form: Mapping[str, str], **headers: str) -> Answer:
        return self._send("POST", path, urlencode(form), headers)

    def json(self, path: str) -> Any:
        answer = self.get(path)
        assert answer.status == 200, answer
        return msgspec.json.decode(answer.raw)

    def text(self, path: str) -> str:
        answer = self.get(path)
        assert answer.status == 200, answer
        return answer.raw.decode()

    def sign_in(self, token: str) -> Answer:
        return self.post("/login", {"token": token})

    def write(self, path: str, **form: str) -> Answer:
        """A form of this session."""
        found = re.search(r'name="secret" value="(\w+)"', self.text("/jobs"))
        assert found is not None
        return self.post(path, {"secret": found[1], **form})

    def _send(self, method: str, path: str, body: str | None, more: Mapping[str, str]) -> Answer:
        connection = http.client.HTTPConnection(self.place.hostname or "", self.place.port, timeout=60)
        headers = {"cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        headers |= {name.replace("_", "-"): text for name, text in more.items()}
        if body is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
        try:
            connection.request(method, path, body=body, headers=headers)
            response = connection.getresponse()
            for line in response.headers.get_all("set-cookie") or ():
                self._keep(line)
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        finally:
            connection.close()

    def _keep(self, line: str) -> None:
        for name, morsel in SimpleCookie(line).items():
            if morsel["max-age"] == "0":
                self.cookies.pop(name, None)
            else:
                self.cookies[name] = morsel.value
