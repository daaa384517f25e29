"""Pods for the tests of Pod Security, and what a check says of them."""

from __future__ import annotations

from typing import Any

from volcano.embedded.apiserver.admitting.pod_security.levels import Check
from volcano.embedded.apiserver.admitting.pod_security.pod_parts import PodParts

SAFE: dict[str, Any] = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
"""The security context of a container that the restricted level allows."""


def a_container(name: str, security: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "any", **({"securityContext": security} if security is not None else {}), **more}


def a_pod(*securities: dict[str, Any], annotations: dict[str, str] | None = None, **spec: Any) -> PodParts:
    """A pod whose containers a, b, … have these security contexts."""
    containers = [a_container(chr(ord("a") + number), each) for number, each in enumerate(securities)]
    return PodParts(annotations or {}, {"containers": containers, **spec})


def said(check: Check, pod: PodParts) -> str:
    violation = check(pod)
    return str(violation) if violation is not None else ""
