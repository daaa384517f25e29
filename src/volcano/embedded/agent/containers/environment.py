"""A container's environment: env, envFrom, fieldRef, resourceFieldRef and `$(VAR)` expansion. Pure.

The objects that it refers to are passed in; a reference to one that does not exist raises `Missing`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from volcano.api.kubelet import AgentContainer, AgentPod, EnvVar
from volcano.api.meta import JSON
from volcano.api.quantity import NANO, Quantity, QuantityError, parse_quantity

_REFERENCE: Final = re.compile(r"\$\$|\$\((?P<name>[^()]*)\)")
_NAME: Final = re.compile(r"[-._a-zA-Z][-._a-zA-Z0-9]*")
_KEYED: Final = re.compile(r"metadata\.(?P<kind>labels|annotations)\['(?P<key>.*)'\]")


class Missing(ValueError):
    """An object or key that a pod refers to does not exist; the container waits with CreateContainerConfigError."""


class MissingPath(Missing):
    """A volume's path does not exist on this machine; the message is complete, as a kubelet writes it."""


class Binary(bytes):
    """Content that was base64-encoded. In a ConfigMap it is for files only, never for variables."""


class References(msgspec.Struct, frozen=True):
    """The objects that a container's environment may refer to: name → key → content."""

    config_maps: Mapping[str, Mapping[str, bytes]] = {}
    secrets: Mapping[str, Mapping[str, bytes]] = {}
    host_address: str = ""
    address: str = ""
    allocatable: Mapping[str, str | int | float] = {}


def environment_of(pod: AgentPod, container: AgentContainer, references: References) -> dict[str, str]:
    """Every variable of the container's spec, in order: later ones may refer to earlier ones."""
    found: dict[str, str] = {}
    for source in container.env_from:
        for kind, reference, known in (
            ("configmap", source.config_map_ref, references.config_maps),
            ("secret", source.secret_ref, references.secrets),
        ):
            if reference is not None:
                content = _content(kind, reference, known)
                found |= {
                    source.prefix + key: _text(f"{kind} {reference.get('name', '')}", key, value)
                    for key, value in sorted(content.items())
                    if _NAME.fullmatch(source.prefix + key)
                }
    for variable in container.env:
        value = _value(pod, container, variable, references, found)
        if value is not None:
            found[variable.name] = value
    return found


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` becomes the variable's value, `$$` a dollar; a reference to an unknown name stays unchanged."""

    def replaced(match: re.Match[str]) -> str:
        if match["name"] is None:
            return "$"
        return variables.get(match["name"], match[0])

    return _REFERENCE.sub(replaced, text)


def field_value(pod: AgentPod, path: str, references: References) -> str:
    """The value of a fieldRef."""
    keyed = _KEYED.fullmatch(path)
    if keyed is not None:
        known = pod.labels if keyed["kind"] == "labels" else pod.annotations
        return known.get(keyed["key"], "")
    simple = {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
        "spec.nodeName": pod.spec.node_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "spec.host": pod.spec.node_name,
        "status.hostIP": references.host_address,
        "status.hostIPs": references.host_address,
        "status.podIP": references.address,
        "status.podIPs": references.address,
        "metadata.labels": _listed(pod.labels),
        "metadata.annotations": _listed(pod.annotations),
    }
    if path not in simple:
        raise Missing(f"fieldRef {path!r} is not supported")
    return simple[path]


def resource_value(pod: AgentPod, default: AgentContainer | None, selector: JSON, references: References) -> str:
    """The value of a resourceFieldRef in units of its divisor, rounded up."""
    name = selector.get("containerName") or (default.name if default else "")
    container = pod.container(name)
    if container is None:
        raise Missing(f"resourceFieldRef names container {name!r}, which the pod does not have")
    kind, _, resource = str(selector.get("resource", "")).partition(".")
    amounts = (container.resources.limits if kind == "limits" else container.resources.requests) or {}
    amount = amounts.get(resource)
    if amount is None and kind == "limits":
        amount = references.allocatable.get(resource)
    try:
        total = parse_quantity(amount) if amount is not None else Quantity(0)
        divisor = parse_quantity(selector.get("divisor") or "1")
    except QuantityError as error:
        raise Missing(f"resourceFieldRef {kind}.{resource}: {error}") from error
    return str(-(-total.nanos // (divisor.nanos or NANO)))


def _value(
    pod: AgentPod, container: AgentContainer, variable: EnvVar, references: References, so_far: Mapping[str, str]
) -> str | None:
    source = variable.value_from
    if source is None:
        return expand(variable.value, so_far)
    if (field := source.get("fieldRef")) is not None:
        return field_value(pod, str(field.get("fieldPath", "")), references)
    if (amount := source.get("resourceFieldRef")) is not None:
        return resource_value(pod, container, amount, references)
    for kind, reference, known in (
        ("configmap", source.get("configMapKeyRef"), references.config_maps),
        ("secret", source.get("secretKeyRef"), references.secrets),
    ):
        if reference is not None:
            content = _content(kind, reference, known)
            key = str(reference.get("key", ""))
            if key in content:
                return _text(f"{kind} {reference.get('name', '')}", key, content[key])
            if reference.get("optional"):
                return None
            raise Missing(f"couldn't find key {key} in {kind} {pod.namespace}/{reference.get('name', '')}")
    return ""


def _content(kind: str, reference: JSON, known: Mapping[str, Mapping[str, bytes]]) -> Mapping[str, bytes]:
    name = str(reference.get("name", ""))
    if name in known:
        is_text = kind == "configmap"
        return {key: value for key, value in known[name].items() if not (is_text and isinstance(value, Binary))}
    if reference.get("optional"):
        return {}
    raise Missing(f'{kind} "{name}" not found')


def _text(origin: str, key: str, value: bytes) -> str:
    if b"\0" in value:
        raise Missing(f"key {key} in {origin} holds a null byte: it cannot be a variable")
    return value.decode(errors="replace")


def _listed(pairs: Mapping[str, str]) -> str:
    """Labels or annotations as the downward API writes them into a file."""
    return "\n".join(f'{key}="{_escaped(value)}"' for key, value in sorted(pairs.items()))


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def content_of(data: Mapping[str, str] | None, binary: Mapping[str, str] | None) -> dict[str, bytes]:
    """The entries of a ConfigMap or Secret as bytes: plain text and base64-encoded ones."""
    plain = {key: value.encode() for key, value in (data or {}).items()}
    return plain | {key: Binary(base64.b64decode(value)) for key, value in (binary or {}).items()}
