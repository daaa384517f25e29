"""CustomResourceDefinition: kinds that users define."""

from __future__ import annotations

from volcano.api.meta import (
    JSON,
    Model,
    Resource,
)


class CustomResourceNames(Model, frozen=True):
    kind: str = ""
    plural: str = ""
    singular: str = ""
    short_names: list[str] = []


class CustomResourceVersion(Model, frozen=True):
    name: str = ""
    served: bool = False
    storage: bool = False
    subresources: JSON | None = None


class CustomResourceDefinitionSpec(Model, frozen=True):
    group: str = ""
    scope: str = ""
    names: CustomResourceNames = CustomResourceNames()
    versions: list[CustomResourceVersion] = []


class CustomResourceDefinition(Resource, frozen=True):
    """As far as it names the kind; the API server has its own, full view."""

    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
