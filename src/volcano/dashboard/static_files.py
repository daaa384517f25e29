"""The dashboard's own files (styles, scripts, the mark), and answers that a browser has already."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Final

from volcano.dashboard.rendering import PACKAGE
from volcano.dashboard.web import WebRequest, plain
from volcano.machinery.transport import Response

STATIC_TYPES: Final = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


def tag_of(body: bytes) -> str:
    return f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"'


def unless_known(response: Response, request: WebRequest) -> Response:
    """304 where the browser shows the same already."""
    tag = response.headers.get("etag", "")
    if tag and request.headers.get("if-none-match") == tag:
        return Response(304, {"etag": tag})
    return response


@cache
def _file(name: str) -> tuple[bytes, str]:
    folder = resources.files(PACKAGE).joinpath("static")
    body = folder.joinpath(name).read_bytes()
    return body, tag_of(body)


@cache
def _file_names() -> Sequence[str]:
    return sorted(each.name for each in resources.files(PACKAGE).joinpath("static").iterdir())


def static_file(name: str, request: WebRequest) -> Response:
    if name not in _file_names():
        return plain(404, "there is no such file")
    body, tag = _file(name)
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(304, headers)
    kind = STATIC_TYPES.get(name[name.rfind(".") :], "application/octet-stream")
    return Response(200, {**headers, "content-type": f"{kind}; charset=utf-8"}, body)
