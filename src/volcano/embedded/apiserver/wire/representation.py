"""The form of answers: the Accept header → JSON as stored, metadata only, or a table; and the responses.

Stored bytes are sent as they are whenever the form allows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api.errors import ApiError, NotAcceptable
from volcano.api.meta import JSON
from volcano.embedded.apiserver.kinds.empty_forms import EMPTY_FORMS
from volcano.embedded.apiserver.registry.resources import Served
from volcano.embedded.apiserver.store.contract import Stored
from volcano.machinery.transport import Request, Response

JSON_TYPE: Final = "application/json"
_ACCEPTED: Final = ("application/json", "application/*", "*/*", "application/yaml")


class View(msgspec.Struct, frozen=True):
    """One entry of an Accept header that the server supports."""

    shape: str = ""  # "", Table, PartialObjectMetadata, PartialObjectMetadataList
    version: str = "v1"


PLAIN: Final = View()


def view_from(request: Request) -> View:
    """The first form in the Accept header that can be served; no header means JSON."""
    accept = request.headers.get("accept", "")
    return PLAIN if accept == JSON_TYPE or not accept.strip() else _view(accept)


def _view(accept: str) -> View:
    for entry in accept.split(","):
        media, *parameters = [part.strip() for part in entry.split(";")]
        if media.lower() not in _ACCEPTED or media.lower() == "application/yaml":
            continue
        options = dict(p.split("=", 1) for p in parameters if "=" in p)
        shape = options.get("as", "")
        if not shape:
            return PLAIN
        if options.get("g") != "meta.k8s.io" or options.get("v") not in ("v1", "v1beta1"):
            continue
        if shape in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList"):
            return View(shape, options["v"])
    raise NotAcceptable(
        "only the following media types are accepted: application/json",
        details={},
    )


class Renderer:
    """Renders objects of one resource as one request asks for them; also the Form of its watch."""

    def __init__(self, served: Served, view: View, *, include_object: str = "Metadata", now: datetime) -> None:
        self._served = served
        self._view = view
        self._include_object = include_object
        self._now = now
        self._passes = served.strategy.has_stored_form and not view.shape
        self._sends_columns = True

    @property
    def key(self) -> object:
        if self._view.shape == "Table":
            return self  # ages depend on the time, and only the first event carries the columns
        return (self._served.type.api_version, self._view.shape, self._view.version)

    def of(self, raw: bytes) -> bytes:
        if self._passes:
            return raw
        return msgspec.json.encode(self.object_of(raw))

    def object_of(self, raw: bytes) -> JSON:
        obj = self._decoded(raw)
        if not self._view.shape:
            return obj
        if self._view.shape == "Table":
            table = self._table([obj])
            table["metadata"] = {"resourceVersion": obj["metadata"].get("resourceVersion", "")}
            if not self._sends_columns:
                table["columnDefinitions"] = None
            self._sends_columns = False
            return table
        return self._partial(obj)

    def _decoded(self, raw: bytes) -> JSON:
        return self._served.strategy.from_stored(msgspec.json.decode(raw))

    def bookmark(self, metadata: JSON) -> bytes:
        if self._view.shape == "Table":
            return msgspec.json.encode(
                {
                    "kind": "Table",
                    "apiVersion": f"meta.k8s.io/{self._view.version}",
                    "metadata": {"resourceVersion": metadata["resourceVersion"]},
                    "columnDefinitions": None,
                    "rows": [],
                }
            )
        if self._view.shape:
            kind, version = "PartialObjectMetadata", f"meta.k8s.io/{self._view.version}"
        else:
            kind, version = self._served.type.kind, self._served.type.api_version
        empty = EMPTY_FORMS.get((version, kind), {})
        return msgspec.json.encode({"kind": kind, "apiVersion": version, "metadata": metadata, **empty})

    def list_of(self, items: Sequence[Stored], metadata: JSON) -> bytes:
        """A whole list as bytes."""
        if self._view.shape == "Table":
            objects = [self._decoded(item.raw) for item in items]
            table = self._table(objects)
            table["metadata"] = metadata
            return msgspec.json.encode(table)
        if self._view.shape:
            kind, version = "PartialObjectMetadataList", f"meta.k8s.io/{self._view.version}"
        else:
            kind, version = self._served.list_kind, self._served.type.api_version
        head = msgspec.json.encode({"kind": kind, "apiVersion": version, "metadata": metadata})
        body = [item.raw for item in items] if self._passes else [self.of(item.raw) for item in items]
        return b'%s,"items":[%s]}' % (head[:-1], b",".join(body))

    def _partial(self, obj: JSON) -> JSON:
        return {
            "kind": "PartialObjectMetadata",
            "apiVersion": f"meta.k8s.io/{self._view.version}",
            "metadata": obj.get("metadata", {}),
        }

    def _table(self, objects: Sequence[JSON]) -> JSON:
        from volcano.embedded.apiserver.schemas.tables.tables import table_for

        columns = self._served.columns
        return table_for(
            self._served.type,
            objects,
            crd_columns=columns,
            is_custom=self._served.is_custom,
            now=self._now,
            include_object=self._include_object,
            version=self._view.version,
        )


def reply(value: Any, status: int = 200, warnings: Sequence[str] = ()) -> Response:
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    headers = {"content-type": JSON_TYPE}
    if warnings:
        headers["warning"] = ", ".join(map(warning_header, warnings[:32]))
    return Response(status, headers, body)


def error_reply(error: ApiError) -> Response:
    response = reply(error.status(), error.status_code)
    if error.retry_after is not None:
        response.headers["retry-after"] = str(error.retry_after)
    if error.status_code == 401:
        response.headers["www-authenticate"] = 'Bearer realm="kubernetes"'
    return response


def warning_header(text: str) -> str:
    """`299 - "text"`, quoted as RFC 7234 wants it."""
    clean = "".join(char if char.isprintable() and char.isascii() else " " for char in text)[:2048]
    escaped = clean.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'


def success(details: JSON | None = None) -> JSON:
    status: JSON = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    if details:
        status["details"] = details
    return status
