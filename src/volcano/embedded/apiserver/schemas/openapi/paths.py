"""The paths of a resource in an OpenAPI document, as far as clients use them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from volcano.api.meta import JSON
from volcano.api.schemas.openapi_table import schema_name
from volcano.api.scheme import ResourceType

SCALE_SCHEMA: Final = "io.k8s.api.autoscaling.v1.Scale"
_STATUS: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
_READ: Final = ("pretty",)
_WRITE: Final = ("pretty", "dryRun", "fieldManager", "fieldValidation")
_LIST: Final = (
    "pretty", "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_DELETE: Final = ("pretty", "dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_TYPES: Final = {
    "allowWatchBookmarks": "boolean", "sendInitialEvents": "boolean", "watch": "boolean", "force": "boolean",
    "orphanDependents": "boolean", "limit": "integer", "timeoutSeconds": "integer", "gracePeriodSeconds": "integer",
}  # fmt: skip
_FURTHER_ANSWERS: Final[dict[str, dict[str, str]]] = {
    "post": {"201": "Created", "202": "Accepted"},
    "put": {"201": "Created"},
    "patch": {"201": "Created"},
    "delete": {"202": "Accepted"},
}
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_PATCH_TYPES: Final = (
    "application/json-patch+json", "application/merge-patch+json", _STRATEGIC, "application/apply-patch+yaml",
)  # fmt: skip


def paths_of(row: ResourceType, names: Mapping[str, str], *, version: int) -> Iterator[tuple[str, JSON]]:
    """Path → operations, for the collection, the objects, and the subresources that hold objects."""
    name = names[row.qualified + "/" + row.version]
    writer = _Writer(row, name, version)
    root = f"/apis/{row.group}/{row.version}" if row.group else f"/api/{row.version}"
    collection = f"{root}/namespaces/{{namespace}}/{row.plural}" if row.namespaced else f"{root}/{row.plural}"
    if row.namespaced:
        yield f"{root}/{row.plural}", {"get": writer.operation("get", "list", _LIST, lists=True, everywhere=True)}
    place = [_path_parameter("namespace", version)] if row.namespaced else []
    yield (
        collection,
        {
            "get": writer.operation("get", "list", _LIST, lists=True),
            "post": writer.operation("post", "post", _WRITE, sends=True),
            "delete": writer.operation("delete", "deletecollection", (*_LIST, *_DELETE[1:]), lists=True),
            **({"parameters": place} if place else {}),
        },
    )
    single = {"parameters": [_path_parameter("name", version), *place]}
    yield (
        f"{collection}/{{name}}",
        {
            "get": writer.operation("get", "get", _READ),
            "put": writer.operation("put", "put", _WRITE, sends=True),
            "patch": writer.operation("patch", "patch", (*_WRITE, "force"), patches=True),
            "delete": writer.operation("delete", "delete", _DELETE, answers=_STATUS),
            **single,
        },
    )
    for subresource in row.subresources:
        if subresource in ("status", "scale"):
            yield f"{collection}/{{name}}/{subresource}", {**writer.subresource(subresource), **single}


class _Writer:
    """Operations of one resource in one of the two dialects."""

    def __init__(self, row: ResourceType, name: str, version: int) -> None:
        self._row, self._name, self._version = row, name, version
        self._prefix = "#/components/schemas/" if version == 3 else "#/definitions/"
        self._kind = {"group": row.group, "kind": row.kind, "version": row.version}
        is_core = schema_name(row.group, row.version, row.kind) is not None
        # kubectl apply sends a strategic merge to every kind that lists it, and only built-in kinds can do it
        self._patch_types = tuple(media for media in _PATCH_TYPES if is_core or media != _STRATEGIC)
        group = "".join(part.capitalize() for part in (row.group.split(".")[0] or "core").split("-"))
        self._tag = f"{group[0].lower()}{group[1:]}_{row.version}"
        self._id = f"{group}{row.version.capitalize()}{'Namespaced' if row.namespaced else ''}{row.kind}"

    def operation(
        self,
        method: str,
        action: str,
        parameters: tuple[str, ...],
        *,
        lists: bool = False,
        sends: bool = False,
        patches: bool = False,
        everywhere: bool = False,
        answers: str = "",
        suffix: str = "",
        kind: JSON | None = None,
    ) -> JSON:
        answered = answers or (f"{self._name}List" if lists else self._name)
        verb = {"post": "create", "put": "replace", "deletecollection": "deleteCollection"}.get(action, action)
        verb = "read" if action == "get" else verb
        found: JSON = {
            "operationId": f"{verb}{self._id}{suffix}{'ForAllNamespaces' if everywhere else ''}",
            "tags": [self._tag],
            "parameters": [_query_parameter(name, self._version) for name in parameters],
            "responses": self._responses(action, answered),
            "x-kubernetes-action": action,
            "x-kubernetes-group-version-kind": dict(kind or self._kind),
        }
        if sends or patches:
            self._add_body(found, answered, patches=patches)
        elif self._version == 2:
            found["consumes"] = ["*/*"]
        if self._version == 2:
            found["produces"] = ["application/json"]
            found["schemes"] = ["https"]
        return found

    def subresource(self, name: str) -> JSON:
        title = name.capitalize()
        is_scale = name == "scale"
        answers = SCALE_SCHEMA if is_scale else ""
        kind: JSON | None = {"group": "autoscaling", "kind": "Scale", "version": "v1"} if is_scale else None
        return {
            "get": self.operation("get", "get", _READ, answers=answers, suffix=title, kind=kind),
            "put": self.operation("put", "put", _WRITE, sends=True, answers=answers, suffix=title, kind=kind),
            "patch": self.operation(
                "patch", "patch", (*_WRITE, "force"), patches=True, answers=answers, suffix=title, kind=kind
            ),
        }

    def _responses(self, action: str, answered: str) -> JSON:
        """As Kubernetes lists them; it leaves out errors, which here are described by `default`."""
        schema: JSON = {"$ref": self._prefix + answered}
        if action == "delete" and self._version == 3:  # the object while something keeps it; Swagger has no anyOf
            schema = {"anyOf": [schema, {"$ref": self._prefix + self._name}]}
        codes = {"200": "OK", **_FURTHER_ANSWERS.get(action, {})}
        errors = {"401": "Unauthorized", "default": "An error."}
        status: JSON = {"$ref": self._prefix + _STATUS}
        return {code: self._content(text, schema) for code, text in codes.items()} | {
            code: self._content(text, status) for code, text in errors.items()
        }

    def _content(self, text: str, schema: JSON) -> JSON:
        if self._version == 2:
            return {"description": text, "schema": schema}
        return {"description": text, "content": {"application/json": {"schema": schema}}}

    def _add_body(self, operation: JSON, name: str, *, patches: bool) -> None:
        schema: JSON = {"type": "object"} if patches else {"$ref": self._prefix + name}
        types = self._patch_types if patches else ("application/json",)
        if self._version == 2:
            operation["consumes"] = list(types) if patches else ["*/*"]
            operation["parameters"].append({"name": "body", "in": "body", "required": True, "schema": schema})
        else:
            content = {media: {"schema": schema} for media in types}
            operation["requestBody"] = {"required": True, "content": content}


def _query_parameter(name: str, version: int) -> JSON:
    kind: JSON = {"type": _TYPES.get(name, "string"), "uniqueItems": True}
    return {"name": name, "in": "query", **(kind if version == 2 else {"schema": kind})}


def _path_parameter(name: str, version: int) -> JSON:
    kind: JSON = {"type": "string", "uniqueItems": True}
    found: dict[str, Any] = {"name": name, "in": "path", "required": True}
    return {**found, **(kind if version == 2 else {"schema": kind})}
