"""/api and /apis: what is served, in the legacy form (one document per version) and the aggregated one."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

import msgspec

from volcano.api.meta import JSON
from volcano.embedded.apiserver.pages.resource_metrics import METRICS
from volcano.embedded.apiserver.pages.reviews import REVIEWS
from volcano.embedded.apiserver.registry.extension_apis import ExtensionApis
from volcano.embedded.apiserver.registry.resources import ResourceRegistry, Served, version_rank
from volcano.machinery.transport import Request, Response

VERBS: Final = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]
_SUBRESOURCE_VERBS: Final = {
    "status": ["get", "patch", "update"],
    "scale": ["get", "patch", "update"],
    "binding": ["create"],
    "eviction": ["create"],
    "log": ["get"],
    "exec": ["create", "get"],
    "attach": ["create", "get"],
    "portforward": ["create", "get"],
    "proxy": ["create", "delete", "get", "patch", "update"],
    "token": ["create"],
    "finalize": ["update"],
    "ephemeralcontainers": ["get", "patch", "update"],
    "resize": ["get", "patch", "update"],
}
_SUBRESOURCE_KINDS: Final = {
    "scale": ("autoscaling", "v1", "Scale"),
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
    "exec": ("", "v1", "PodExecOptions"),
    "attach": ("", "v1", "PodAttachOptions"),
    "portforward": ("", "v1", "PodPortForwardOptions"),
}
NOT_STORED: Final = (*((row, ["create"]) for row in REVIEWS), *((row, ["get", "list"]) for row in METRICS))
"""Resources that are answered and not stored, with their verbs."""
AGGREGATED: Final = {"v2", "v2beta1"}


def discover(registry: ResourceRegistry, extensions: ExtensionApis, request: Request) -> JSON | Response | None:
    """The document of a discovery path; None for other paths."""
    parts = [part for part in request.path.split("/") if part]
    if parts in (["api"], ["apis"]) and (version := _aggregated_version(request)):
        return _aggregated(registry, extensions, request, version, is_core=parts == ["api"])
    match parts:
        case ["api"]:
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
        case ["api", "v1"]:
            return _resource_list(registry, "", "v1")
        case ["apis"]:
            groups = [_group(name, versions) for name, versions in _groups(registry, extensions).items() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
        case ["apis", group]:
            versions = _groups(registry, extensions).get(group)
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(group, versions)} if versions else None
        case ["apis", group, version]:
            is_served = version in _groups(registry, extensions).get(group, ())
            return _resource_list(registry, group, version) if is_served else None
    return None


def _groups(registry: ResourceRegistry, extensions: ExtensionApis) -> dict[str, list[str]]:
    groups = dict(registry.groups())
    for row, _ in NOT_STORED:
        groups.setdefault(row.group, [row.version])
    for group, versions in extensions.groups().items():
        groups[group] = sorted({*groups.get(group, ()), *versions}, key=version_rank)
    return groups


def _group(name: str, versions: Sequence[str]) -> JSON:
    listed = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": listed, "preferredVersion": listed[0]}


def _resource_list(registry: ResourceRegistry, group: str, version: str) -> JSON:
    resources: list[JSON] = []
    for served in registry.all():
        if (served.type.group, served.type.version) == (group, version):
            resources += _legacy(served)
    for row, verbs in NOT_STORED:
        if (row.group, row.version) == (group, version):
            resources.append(
                {"name": row.plural, "singularName": row.singular or row.kind.lower(), "namespaced": row.namespaced,
                 "kind": row.kind, "verbs": verbs}
            )  # fmt: skip
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": f"{group}/{version}" if group else version,
        "resources": resources,
    }


def _legacy(served: Served) -> list[JSON]:
    row = served.type
    resource: JSON = {
        "name": row.plural,
        "singularName": row.singular or row.kind.lower(),
        "namespaced": row.namespaced,
        "kind": row.kind,
        "verbs": VERBS,
        "storageVersionHash": _hash(served),
    }
    if row.short_names:
        resource["shortNames"] = list(row.short_names)
    if row.categories:
        resource["categories"] = list(row.categories)
    below = []
    for name in row.subresources:
        entry: JSON = {
            "name": f"{row.plural}/{name}",
            "singularName": "",
            "namespaced": row.namespaced,
            "kind": row.kind,
            "verbs": _SUBRESOURCE_VERBS[name],
        }
        if name in _SUBRESOURCE_KINDS:
            group, version, kind = _SUBRESOURCE_KINDS[name]
            entry |= {"group": group, "version": version, "kind": kind}
        below.append(entry)
    return [resource, *below]


def _hash(served: Served) -> str:
    text = f"{served.type.group}/{served.storage_version}/{served.type.kind}"
    return hashlib.sha256(text.encode()).hexdigest()[:11] + "="


def _aggregated_version(request: Request) -> str:
    """Which aggregated form the client prefers, if it can read one."""
    for entry in request.headers.get("accept", "").split(","):
        parts = [part.strip() for part in entry.split(";")]
        options = dict(p.split("=", 1) for p in parts[1:] if "=" in p)
        if parts[0] != "application/json":
            continue
        if options.get("as") == "APIGroupDiscoveryList" and options.get("g") == "apidiscovery.k8s.io":
            if options.get("v") in AGGREGATED:
                return options["v"]
        elif not options.get("as"):
            return ""
    return ""


def _aggregated(
    registry: ResourceRegistry, extensions: ExtensionApis, request: Request, version: str, *, is_core: bool
) -> Response:
    items: list[JSON] = [
        {
            "metadata": {"name": group, "creationTimestamp": None} if group else {"creationTimestamp": None},
            "versions": [
                _extension_version(extensions, group, v)
                if extensions.find(group, v)
                else _aggregated_group_version(registry, group, v)
                for v in versions
            ],
        }
        for group, versions in _groups(registry, extensions).items()
        if (group == "") is is_core
    ]
    api_version = f"apidiscovery.k8s.io/{version}"
    body = msgspec.json.encode(
        {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}
    )
    tag = f'"{hashlib.sha256(body).hexdigest().upper()}"'
    headers = {
        "content-type": f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList",
        "etag": tag,
        "vary": "Accept",
    }
    if request.headers.get("if-none-match") == tag:
        return Response(304, headers)
    return Response(200, headers, body)


def _aggregated_group_version(registry: ResourceRegistry, group: str, version: str) -> JSON:
    resources = []
    for served in registry.all():
        if (served.type.group, served.type.version) != (group, version):
            continue
        row = served.type
        scope = "Namespaced" if row.namespaced else "Cluster"
        resource: JSON = {
            "resource": row.plural,
            "responseKind": {"group": row.group, "version": row.version, "kind": row.kind},
            "scope": scope,
            "singularResource": row.singular or row.kind.lower(),
            "verbs": VERBS,
        }
        if row.short_names:
            resource["shortNames"] = list(row.short_names)
        if row.categories:
            resource["categories"] = list(row.categories)
        if row.subresources:
            resource["subresources"] = [
                _aggregated_subresource(row.group, row.version, row.kind, s) for s in row.subresources
            ]
        resources.append(resource)
    resources += [
        {
            "resource": row.plural,
            "responseKind": {"group": group, "version": version, "kind": row.kind},
            "scope": "Namespaced" if row.namespaced else "Cluster",
            "singularResource": row.singular or row.kind.lower(),
            "verbs": verbs,
        }
        for row, verbs in NOT_STORED
        if (row.group, row.version) == (group, version)
    ]
    return {"version": version, "freshness": "Current", "resources": resources}


def _aggregated_subresource(group: str, version: str, kind: str, name: str) -> JSON:
    group, version, kind = _SUBRESOURCE_KINDS.get(name, (group, version, kind))
    return {
        "subresource": name,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "verbs": _SUBRESOURCE_VERBS[name],
    }


def _extension_version(extensions: ExtensionApis, group: str, version: str) -> JSON:
    """What an extension server listed last; stale while it does not answer."""
    listed = extensions.resources(group, version)
    rows = [row for row in listed or () if isinstance(row, dict) and row.get("name")]
    resources: dict[str, JSON] = {}
    for row in rows:
        name, _, below = str(row["name"]).partition("/")
        kind = {"group": row.get("group") or group, "version": row.get("version") or version, "kind": row.get("kind")}
        if not below:
            resources[name] = {
                "resource": name,
                "responseKind": kind,
                "scope": "Namespaced" if row.get("namespaced") else "Cluster",
                "singularResource": row.get("singularName") or str(row.get("kind") or "").lower(),
                "verbs": row.get("verbs") or [],
                **{field: row[field] for field in ("shortNames", "categories") if row.get(field)},
            }
        elif name in resources:
            below_it = resources[name].setdefault("subresources", [])
            below_it.append({"subresource": below, "responseKind": kind, "verbs": row.get("verbs") or []})
    freshness = "Stale" if listed is None else "Current"
    return {"version": version, "freshness": freshness, "resources": list(resources.values())}
