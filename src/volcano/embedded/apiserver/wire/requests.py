"""URL, query and headers → verb, resource and options. Pure: only the request is read.

Authorization uses the same parse (verb, group, resource, subresource, name) as the verbs do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

import msgspec

from volcano.api.errors import BadRequest, FieldError, Invalid
from volcano.api.field_errors import not_supported
from volcano.machinery.transport import Request

_VERBS: Final = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NAMESPACE_SUBRESOURCES: Final = ("status", "finalize")
MAX_PATH_CHARACTERS: Final = 4096
MAX_QUERY_BYTES: Final = 64 * 1024


class RequestTarget(msgspec.Struct, frozen=True):
    """What a resource URL points at; `rest` is what follows a subresource (a proxied path)."""

    verb: str
    group: str
    version: str
    resource: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""
    rest: str = ""

    @property
    def qualified(self) -> str:
        return f"{self.resource}.{self.group}" if self.group else self.resource

    def fits_scope(self, *, namespaced: bool) -> bool:
        """Namespaced objects have a namespace in their URL, others none, and a Namespace its own.

        Rights in one namespace must not become rights on objects of the cluster that are named below it.
        """
        if namespaced:
            return bool(self.namespace) or not (self.name or self.verb == "create")
        return not self.namespace or (self.resource == "namespaces" and self.namespace == self.name)


def parse_target(request: Request) -> RequestTarget | None:
    """The resource a request is about, or None for paths that are not about resources (/version, /apis, …)."""
    if len(request.path) > MAX_PATH_CHARACTERS:
        raise BadRequest(f"the path is longer than {MAX_PATH_CHARACTERS} characters")
    parts = request.path.strip("/").split("/")
    if "%" in request.path:
        parts = [unquote(part) for part in parts]
    if parts[0] == "api" and len(parts) >= 3:
        group, version, parts = "", parts[1], parts[2:]
    elif parts[0] == "apis" and len(parts) >= 4:
        group, version, parts = parts[1], parts[2], parts[3:]
    else:
        return None
    watches = request.method == "GET" and flag(request, "watch")
    if parts[0] == "watch" and len(parts) > 1:
        watches, parts = request.method == "GET", parts[1:]
    namespace, parts = _namespace(parts)
    if not parts or not parts[0]:
        return None
    resource, name, subresource, rest = _padded(parts)
    verb = _verb(request.method, name, watches=watches and not subresource)
    return RequestTarget(verb, group, version, resource, namespace, name, subresource, rest)


def _namespace(parts: list[str]) -> tuple[str, list[str]]:
    if parts[0] != "namespaces" or len(parts) < 3:
        return (parts[1] if parts[0] == "namespaces" and len(parts) == 2 else ""), parts
    if len(parts) == 3 and parts[2] in _NAMESPACE_SUBRESOURCES:
        return parts[1], parts
    return parts[1], parts[2:]


def _padded(parts: Sequence[str]) -> tuple[str, str, str, str]:
    resource, name, subresource = [*parts[:3], "", "", ""][:3]
    return resource, name, subresource, "/".join(parts[3:])


def _verb(method: str, name: str, *, watches: bool) -> str:
    if method in ("GET", "HEAD"):
        if watches:
            return "watch"
        return "get" if name else "list"
    if method == "DELETE" and not name:
        return "deletecollection"
    return _VERBS.get(method, method.lower())


def flag(request: Request, name: str, *, default: bool = False) -> bool:
    """A boolean query parameter as Kubernetes reads it: empty and `true` and `1` are true, `false` and `0` false."""
    found = request.params(name)
    if not found:
        return default
    return found[0].lower() not in ("0", "false")


def number(request: Request, name: str) -> int | None:
    text = request.param(name)
    if not text:
        return None
    try:
        value = int(text)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None
    if abs(value) >= 2**63:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": value out of range')
    return value


VERB_OPTIONS: Final = {"POST": "Create", "PUT": "Update", "PATCH": "Patch", "DELETE": "Delete"}


class WriteOptions(msgspec.Struct, frozen=True):
    """The query parameters of create, update and patch."""

    dry_run: bool = False
    field_validation: str = "Warn"
    field_manager: str = ""
    force: bool | None = None


_USUAL: Final = WriteOptions()


def write_options(request: Request) -> WriteOptions:
    if not request.query:
        return _USUAL
    validation = request.param("fieldValidation") or "Warn"
    if validation not in ("Strict", "Warn", "Ignore"):
        error = not_supported("fieldValidation", validation, ("", "Ignore", "Strict", "Warn"))
        raise invalid_option(f"{VERB_OPTIONS[request.method]}Options", error)
    manager = request.param("fieldManager")
    if len(manager) > 128:
        raise BadRequest("fieldManager: Too long: may not be more than 128 bytes")
    if not manager.isprintable():
        raise BadRequest(f"fieldManager: Invalid value: {manager!r}: should only contain printable characters")
    force = flag(request, "force") if request.params("force") else None
    dry = dry_run(request.params("dryRun"), VERB_OPTIONS[request.method])
    return WriteOptions(dry, validation, manager, force)


def dry_run(values: Sequence[str], verb: str = "Delete") -> bool:
    given = [value for value in values if value]
    if any(value != "All" for value in given):
        raise invalid_option(f"{verb}Options", not_supported("dryRun", given, ("All",)))
    return "All" in given


def invalid_option(kind: str, error: FieldError) -> Invalid:
    """The answer to a query parameter that has a wrong value."""
    return Invalid.of(kind, "", [error], "meta.k8s.io")


def default_manager(request: Request) -> str:
    """The field manager of a client that names none: the first part of its User-Agent, as in Kubernetes."""
    agent = request.headers.get("user-agent", "")
    return agent.split("/", 1)[0][:128].strip() or "unknown"
