"""Endpoints that users write do not lead to services of the machine: the server and its proxies connect there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from volcano.api.errors import Forbidden
from volcano.api.meta import JSON
from volcano.api.pods.addresses import is_of_the_machine
from volcano.embedded.apiserver.access.authorization import AccessRequest, Authorizer
from volcano.machinery.admission import Attributes

RESTRICTED: Final = "restricted"
"""Who may create the subresource of this name in all namespaces may write any address."""
_KINDS: Final = frozenset({"endpoints", "endpointslices.discovery.k8s.io"})


def check_endpoint_addresses(authorizer: Authorizer, attributes: Attributes) -> None:
    """Forbidden when a user adds a loopback, link-local or similar address."""
    row = attributes.resource
    if row.qualified not in _KINDS or attributes.object is None:
        return
    added = {*_addresses(attributes.object)} - {*_addresses(attributes.old or {})}
    offending = sorted(address for address in added if is_of_the_machine(address))
    if not offending:
        return
    if not authorizer.allows(attributes.user, AccessRequest("create", row.group, row.plural, RESTRICTED)):
        raise Forbidden(
            f'{row.qualified} "{attributes.name}" is forbidden: the address {offending[0]} is one of the machine itself'
        )


def _addresses(obj: JSON) -> Iterator[str]:
    for subset in _objects(obj.get("subsets")):
        for field in ("addresses", "notReadyAddresses"):
            yield from (str(each.get("ip")) for each in _objects(subset.get(field)))
    for endpoint in _objects(obj.get("endpoints")):
        yield from (str(each) for each in endpoint.get("addresses") or ())


def _objects(found: Any) -> list[JSON]:
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
