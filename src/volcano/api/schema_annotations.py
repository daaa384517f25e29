"""How a struct's field declares what its CRD schema contains beyond the type.

Limits, enums and defaults of the wire are written with `wire(minimum=0, …)`. They are *not* checked when structs are
decoded: the API server does that, by the CRD generated from them, and a reader must not fail on what is stored.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from msgspec import Meta

from volcano.api.meta import JSON

SUBDOMAIN_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
LABEL_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"


def wire(**schema: Any) -> Meta:
    """Extra OpenAPI keys of a field: default, format, enum, x-kubernetes-list-type, …; `ref` names a core schema."""
    return Meta(extra={"wire": schema})


Int32: TypeAlias = Annotated[int, wire(format="int32")]
Count: TypeAlias = Annotated[int, wire(minimum=0, format="int32")]
Duration: TypeAlias = Annotated[str, wire(type="string")]
Subdomain: TypeAlias = Annotated[str, wire(maxLength=253, pattern=SUBDOMAIN_PATTERN)]
DnsLabel: TypeAlias = Annotated[str, wire(maxLength=63, pattern=LABEL_PATTERN)]
Name253: TypeAlias = Annotated[str, wire(maxLength=253)]

PodTemplate: TypeAlias = Annotated[JSON, wire(ref="io.k8s.api.core.v1.PodTemplateSpec")]
TemplateMetadata: TypeAlias = Annotated[JSON, wire(ref="io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")]
ClaimSpec: TypeAlias = Annotated[JSON, wire(ref="io.k8s.api.core.v1.PersistentVolumeClaimSpec")]
