"""ApiServer: the embedded Kubernetes API over a store, put together, started and closed.

How a request is answered is request_chain; `handle` is its entrance for clients in this process, `handle_http` the one
for serving.asgi.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from prometheus_client import CollectorRegistry

from volcano.api.errors import NotFound
from volcano.api.schemas.shipped_crds import shipped_crds
from volcano.embedded.apiserver.access.authentication import Authenticator, Subject
from volcano.embedded.apiserver.access.authorization import AccessRequest, Authorizer, RoleBasedAccess
from volcano.embedded.apiserver.admitting.hook import AdmissionHook
from volcano.embedded.apiserver.admitting.server_admission import ServerAdmission
from volcano.embedded.apiserver.admitting.webhooks import Webhooks
from volcano.embedded.apiserver.calls import Backend
from volcano.embedded.apiserver.exchange import Exchange
from volcano.embedded.apiserver.kinds.service_addresses import ServiceAddresses
from volcano.embedded.apiserver.pages.router import Pages
from volcano.embedded.apiserver.pages.status import Health
from volcano.embedded.apiserver.pages.telemetry import Telemetry
from volcano.embedded.apiserver.registry.definition_follower import DefinitionFollower
from volcano.embedded.apiserver.registry.extension_apis import ExtensionApis
from volcano.embedded.apiserver.registry.resources import ResourceRegistry
from volcano.embedded.apiserver.registry.watch_hub import WatchHub
from volcano.embedded.apiserver.request_chain import RequestChain
from volcano.embedded.apiserver.store.contract import Store
from volcano.embedded.apiserver.upkeep.api_service_status import ApiServiceStatus
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN, bootstrap
from volcano.embedded.apiserver.upkeep.definition_cleaner import DefinitionCleaner
from volcano.embedded.apiserver.upkeep.expiry import Expiry
from volcano.embedded.apiserver.upkeep.quota_status import QuotaStatus
from volcano.embedded.apiserver.wire.extension_client import ExtensionClient
from volcano.embedded.apiserver.wire.outbound import Outbound
from volcano.embedded.apiserver.wire.requests import RequestTarget
from volcano.embedded.apiserver.wire.webhook_client import WebhookClient
from volcano.machinery.clock import Clock
from volcano.machinery.ids import Ids, RandomIds
from volcano.machinery.transport import Request, Response, User

__all__ = ["ADMIN", "ApiServer"]


class ApiServer:
    """The embedded Kubernetes API over a store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        admission: AdmissionHook | None = None,
        authorizer: Authorizer | None = None,
        tokens: Mapping[str, User] | None = None,
        signing_key: bytes | None = None,
        ids: Ids | None = None,
        metrics: CollectorRegistry | None = None,
    ) -> None:
        registry = ResourceRegistry()
        DefinitionFollower(store, registry)
        hub, outbound, ids = WatchHub(store), Outbound(), ids or RandomIds()
        webhook_client = WebhookClient(store, outbound)
        authorizer = self._authorizer = authorizer or RoleBasedAccess(store)
        authenticator = Authenticator(store, clock, tokens=tokens, signing_key=signing_key)
        self.backend = Backend(
            store=store,
            registry=registry,
            hub=hub,
            clock=clock,
            ids=ids,
            admission=ServerAdmission(store, admission, Webhooks(store, webhook_client, ids), authorizer),
            issue_token=authenticator.issue,
            outbound=outbound,
            webhooks=webhook_client,
            addresses=ServiceAddresses(store),
            extensions=ExtensionApis(store),
            extension_client=ExtensionClient(webhook_client, outbound),
        )
        self.health = Health()
        telemetry = Telemetry(store, hub, metrics)
        pages = Pages(registry, self.backend.extensions, self.health, telemetry, store, clock)
        self._chain = RequestChain(self.backend, authenticator, authorizer, pages, telemetry)
        self._quotas = QuotaStatus(store, self.backend.admission.quota, self.handle, clock)
        self._cleaner = DefinitionCleaner(store, self.handle, clock)
        self._expiry = Expiry(store, self.handle, clock)
        self._api_services = ApiServiceStatus(self.backend, self.handle)

    async def start(self) -> None:
        """Create the objects that every cluster has; the server is ready to serve afterwards."""
        await bootstrap(self.handle, shipped_crds())
        self._cleaner.start()
        self._expiry.start()
        self._api_services.start()

    async def close(self) -> None:
        """End all watches and close the store."""
        self.backend.hub.close()
        await self._quotas.close()
        await self._cleaner.close()
        await self._expiry.close()
        await self._api_services.close()
        await self.backend.outbound.close()
        await self.backend.store.close()

    async def handle(self, request: Request) -> Response:
        """Answer a request of a client in this process, as its `user`; never raises."""
        return await self._chain.handle(Exchange(request))

    async def handle_http(
        self,
        request: Request,
        certificate: Subject | None,
        read_body: Callable[[], Awaitable[bytes]],
        proved: Callable[[str], None] | None = None,
    ) -> Response:
        """Answer a request that came over HTTP and names no user; its body is read when the caller may ask."""
        return await self._chain.handle(Exchange(request, certificate, read_body, proved))

    def may_list(self, user: User, group: str, resource: str, namespace: str = "") -> bool:
        """Whether the user may list a resource, in one namespace or in all."""
        return self._authorizer.allows(user, AccessRequest("list", group, resource, namespace=namespace))

    def authorize_connection(
        self, request: Request, certificate: Subject | None, proved: Callable[[str], None] | None = None
    ) -> RequestTarget:
        """What a client may connect to (exec, attach, portforward); raises an ApiError when it may not."""
        exchange = Exchange(request, certificate, proved=proved)
        self._chain.authorize_connection(exchange)
        if exchange.target is None:
            raise NotFound("the server could not find the requested resource")
        return exchange.target
