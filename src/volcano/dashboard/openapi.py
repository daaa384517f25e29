"""The description of /api/v1 (OpenAPI 3.1), made from the table of pages and from the types of what they show."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Final

import msgspec

from volcano import __version__
from volcano.api.meta import JSON
from volcano.dashboard.pages import PAGES, WebPage
from volcano.dashboard.web import API_PREFIX, WebProblem

PLACE: Final = f"{API_PREFIX}/openapi.json"
REFERENCE: Final = "#/components/schemas/{name}"
AT: Final = "A past moment, such as 2026-01-31T12:00:00Z: answered from the history."
ERRORS: Final = {
    "400": "A parameter cannot be read.",
    "401": "There is no session, or its token is not accepted any more.",
    "403": "The caller may not see this.",
    "404": "There is no such object, or no history.",
    "default": "There is another reason why there is no answer.",
}


@cache
def openapi_text() -> bytes:
    return msgspec.json.encode(openapi())


def openapi() -> JSON:
    pages = [page for page in PAGES if page.has_json]
    kinds: list[type[msgspec.Struct]] = list(dict.fromkeys([*(page.shows for page in pages), WebProblem]))
    references, schemas = msgspec.json.schema_components(kinds, ref_template=REFERENCE)
    shown = dict(zip(kinds, references, strict=True))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Volcano dashboard",
            "version": __version__,
            "description": "What the pages of the dashboard show, with the rights of the caller.",
        },
        "security": [{"session": []}, {"token": []}],
        "paths": {address_of(page): {"get": _operation(page, shown)} for page in pages},
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "session": {"type": "apiKey", "in": "cookie", "name": "volcano-dashboard-PORT"},
                "token": {"type": "http", "scheme": "bearer", "description": "A token of the API server."},
            },
        },
    }


def address_of(page: WebPage) -> str:
    return f"{API_PREFIX}{page.path if page.path != '/' else '/overview'}"


def _operation(page: WebPage, shown: dict[type[msgspec.Struct], JSON]) -> JSON:
    answers: JSON = {"200": _answer("What the page shows.", shown[page.shows])}
    answers |= {code: _answer(text, shown[WebProblem]) for code, text in ERRORS.items()}
    words = re.findall(r"\w+", page.path) or ["overview"]
    return {
        "operationId": "_".join(words),
        "summary": page.title.replace("{", "").replace("}", ""),
        "parameters": list(_parameters(page)),
        "responses": answers,
    }


def _parameters(page: WebPage) -> Iterable[JSON]:
    for name in re.findall(r"\{(\w+)\}", page.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    given = {**page.query, **({"at": AT} if page.then is not None else {})}
    for name, text in given.items():
        yield {"name": name, "in": "query", "description": text, "schema": {"type": "string"}}


def _answer(text: str, schema: JSON) -> JSON:
    return {"description": text, "content": {"application/json": {"schema": schema}}}
