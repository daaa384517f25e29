"""Backend and Call: the parts of the server, and one authorized request about one resource, as verbs get them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from volcano.api.errors import NotFound
from volcano.api.times import timestamp
from volcano.embedded.apiserver.access.authentication import TokenClaims
from volcano.embedded.apiserver.admitting.server_admission import ServerAdmission
from volcano.embedded.apiserver.kinds.service_addresses import ServiceAddresses
from volcano.embedded.apiserver.kinds.strategy import Strategy
from volcano.embedded.apiserver.registry.extension_apis import ExtensionApis
from volcano.embedded.apiserver.registry.resources import ResourceRegistry, Served
from volcano.embedded.apiserver.registry.watch_hub import WatchHub
from volcano.embedded.apiserver.store.contract import ObjectKey, Store, Stored
from volcano.embedded.apiserver.wire.extension_client import ExtensionClient
from volcano.embedded.apiserver.wire.outbound import Outbound
from volcano.embedded.apiserver.wire.representation import Renderer, view_from
from volcano.embedded.apiserver.wire.requests import RequestTarget
from volcano.embedded.apiserver.wire.webhook_client import WebhookClient
from volcano.machinery.clock import Clock
from volcano.machinery.ids import Ids
from volcano.machinery.transport import Handler, Request, User


@dataclass(slots=True)
class Backend:
    """The server's parts."""

    store: Store
    registry: ResourceRegistry
    hub: WatchHub
    clock: Clock
    ids: Ids
    admission: ServerAdmission
    issue_token: Callable[[TokenClaims], str]
    outbound: Outbound
    webhooks: WebhookClient
    addresses: ServiceAddresses
    extensions: ExtensionApis
    extension_client: ExtensionClient
    local_handlers: dict[ObjectKey, Handler] = field(default_factory=dict)
    """Services whose `proxy` is answered by a function of this process; its paths begin at the service."""
    local_paths: dict[str, Handler] = field(default_factory=dict)
    """First parts of non-resource paths that a function of this process answers; the request has its user."""

    def timestamp(self) -> str:
        return timestamp(self.clock.now())


@dataclass(slots=True)
class Call:
    """One authorized request about one resource."""

    backend: Backend
    request: Request
    target: RequestTarget
    served: Served
    user: User
    warnings: list[str] = field(default_factory=list)
    strategy: Strategy = field(init=False)

    def __post_init__(self) -> None:
        self.strategy = self.served.strategy

    @property
    def key(self) -> ObjectKey:
        return self.key_of(self.target.name)

    def key_of(self, name: str) -> ObjectKey:
        namespace = self.target.namespace if self.served.type.namespaced else ""
        return ObjectKey(self.served.storage, namespace, name)

    def found(self) -> Stored:
        stored = self.backend.store.find(self.key)
        if stored is None:
            raise self.not_found()
        return stored

    def not_found(self, name: str = "") -> NotFound:
        row = self.served.type
        return NotFound.of(row.plural, name or self.target.name, row.group)

    def renderer(self) -> Renderer:
        return Renderer(
            self.served,
            view_from(self.request),
            include_object=self.request.param("includeObject") or "Metadata",
            now=self.backend.clock.now(),
        )
