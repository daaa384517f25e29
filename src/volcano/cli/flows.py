"""`vcctl jobflow` and `vcctl jobtemplate`: the same commands for two kinds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import yaml

from volcano.api.ages import age
from volcano.api.errors import ApiError
from volcano.api.manifests import ManifestError
from volcano.api.meta import JSON, Key
from volcano.api.scheme import ResourceType
from volcano.cli.command_line import Called, say
from volcano.cli.connection import ApiConnection, connect
from volcano.cli.failures import Failed
from volcano.cli.formats import padded, parse_time, utc_now
from volcano.cli.manifest_files import checked_documents
from volcano.cli.output import follow, show
from volcano.cli.resources import JOB_FLOWS, JOB_TEMPLATES


def _kind(called: Called) -> ResourceType:
    return JOB_FLOWS if called.path[1].name == "jobflow" else JOB_TEMPLATES


def create(called: Called) -> int:
    """All documents of the file; 1 when one was refused."""
    connection, failed = connect(called), 0
    for document, resource in _documents(called.values["file"], _kind(called)):
        try:
            connection.attempt(connection.client.create(resource, document))
        except ApiError as error:
            failed = 1
            say(f"Failed to create {resource.kind}: {error.message}")
        else:
            say(f"Created {resource.kind}: {_key(document)}")
    return failed


def delete(called: Called) -> int:
    connection, resource, values = connect(called), _kind(called), called.values
    if values["file"]:
        return _delete_documents(connection, _documents(values["file"], resource))
    if not values["name"]:
        raise Failed(f"{resource.kind.lower()} name must be specified")
    found = connection.get(resource, values["namespace"], values["name"])
    connection.delete(resource, values["namespace"], values["name"])
    say(f"Deleted {resource.kind}: {_key(found)}")
    return 0


def _delete_documents(connection: ApiConnection, documents: list[tuple[JSON, ResourceType]]) -> int:
    failed = 0
    for document, resource in documents:
        try:
            connection.attempt(connection.client.delete(resource, _key(document)))
        except ApiError as error:
            failed = 1
            say(f"Failed to delete {resource.kind}: {error.message}")
        else:
            say(f"Deleted {resource.kind}: {_key(document)}")
    return failed


def get(called: Called) -> None:
    connection, resource, values = connect(called), _kind(called), called.values
    if not values["name"]:
        raise Failed(f"{resource.kind.lower()} name is mandatory to get the particular {resource.kind.lower()} details")
    say(_table(resource, [connection.get(resource, values["namespace"], values["name"])]))


def list_objects(called: Called) -> None:
    connection, resource, values = connect(called), _kind(called), called.values
    namespace = "" if values.get("all-namespaces") else values["namespace"]
    items, revision = connection.list_at(resource, namespace)

    def table(shown: Sequence[JSON]) -> str:
        return _table(resource, shown)

    show(called, resource, items, table, table)
    follow(called, connection, resource, namespace, revision, lambda item: say(table([item]).splitlines()[1]))


def describe(called: Called) -> None:
    connection, resource, values = connect(called), _kind(called), called.values
    if values["name"]:
        items = [connection.get(resource, values["namespace"], values["name"])]
    else:
        items = connection.list(resource, values["namespace"])
    if values["format"] not in ("yaml", "json"):
        print(f"Unsupported format: {values['format']}", end="")
        return
    print("\n\n".join(_described(resource, item, values["format"]) for item in items), end="")


def _described(resource: ResourceType, item: JSON, form: str) -> str:
    item["metadata"].pop("managedFields", None)
    item = {**item, "apiVersion": resource.api_version, "kind": resource.kind}
    if form == "json":
        return msgspec.json.format(msgspec.json.encode(item, order="sorted"), indent=2).decode() + "\n"
    return str(yaml.safe_dump(item, sort_keys=True, default_flow_style=False, allow_unicode=True, width=2**16))


def _table(resource: ResourceType, items: Sequence[JSON]) -> str:
    now = utc_now()
    rows: list[tuple[str, ...]] = []
    for item in items:
        metadata = item["metadata"]
        row: tuple[str, ...] = (metadata["name"], metadata.get("namespace", ""))
        if resource is JOB_FLOWS:
            phase = ((item.get("status") or {}).get("state") or {}).get("phase", "")
            row += (phase, age(parse_time(metadata.get("creationTimestamp")), now))
        rows.append(row)
    headers = ("Name", "Namespace", "Phase", "Age") if resource is JOB_FLOWS else ("Name", "Namespace")
    widths = [max(len(cell) for cell in column) + 4 for column in zip(headers, *rows)]
    return "\n".join(padded(row, widths) for row in (headers, *rows))


def _documents(path: str, resource: ResourceType) -> list[tuple[JSON, ResourceType]]:
    """Every part of the file between `---` with its kind, in namespace default unless it says otherwise.

    A flow and the templates it names often share a file, so each is taken as what it is; anything else counts as the
    command's own kind, and the API server refuses it.
    """
    try:
        documents = checked_documents(Path(path).read_bytes(), source=path)
    except OSError as error:
        raise Failed(f"open {path}: {(error.strerror or str(error)).lower()}") from error
    except ManifestError as error:
        raise Failed(f"failed to decode file: {error}") from error
    for document in documents:
        metadata = document.setdefault("metadata", {})
        metadata["namespace"] = metadata.get("namespace") or "default"
    kinds = {kind.kind: kind for kind in (JOB_FLOWS, JOB_TEMPLATES)}
    return [(document, kinds.get(document.get("kind", ""), resource)) for document in documents]


def _key(document: JSON) -> Key:
    metadata = document.get("metadata") or {}
    return Key(metadata.get("namespace") or "default", metadata.get("name") or "")
