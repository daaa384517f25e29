"""The CustomResourceDefinitions of Volcano's kinds as the release ships them, read from data/crds.json.

tools/generate_crds.py writes that file from api.schemas.crds, which owns what is in it. A server that starts reads the
file: making the schemas from structs would take most of the time until it is ready.
"""

from __future__ import annotations

from functools import cache
from importlib import resources

import msgspec

from volcano.api.meta import JSON


def shipped_crds() -> list[JSON]:
    """All of them, as `crds.crd_manifests` makes them; every caller gets a copy."""
    found: list[JSON] = msgspec.json.decode(resources.files("volcano.api").joinpath("data/crds.json").read_bytes())
    return found


@cache
def shipped_schemas() -> tuple[JSON, ...]:
    """Their schemas, which tests have validated; read only."""
    return tuple(version["schema"]["openAPIV3Schema"] for crd in shipped_crds() for version in crd["spec"]["versions"])
