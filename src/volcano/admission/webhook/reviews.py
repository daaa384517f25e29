"""AdmissionReview in, AdmissionReview out: what the webhook's HTTPS server answers to one request.

Decisions are taken from a mirror of queues and namespaces. A refusal, and anything about a queue itself, is decided
again from a live read first: right after a change the mirror may not have it yet. A Reservation, which is written
rarely, is decided from a live read alone.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from collections.abc import Callable
from typing import Any, Final

import msgspec

from volcano.admission.chain import BY_PATH, RESERVATIONS_VALIDATE, AdmissionChain, Webhook
from volcano.admission.refusal_events import event_about
from volcano.admission.review import INDEXES, Reader, ReviewAnswer, deny
from volcano.api.core import Namespace, Node
from volcano.api.errors import ApiError
from volcano.api.meta import JSON, Resource
from volcano.api.reservation import Reservation
from volcano.api.scheduling import Queue
from volcano.api.scheme import ResourceType
from volcano.machinery.admission import Attributes
from volcano.machinery.client import Client
from volcano.machinery.plan import Record
from volcano.machinery.transport import User
from volcano.machinery.world import Mirror

log = logging.getLogger(__name__)
VERSION: Final = "admission.k8s.io/v1"
READS_QUEUES: Final = ("/jobs/validate", "/podgroups/validate", "/queues/validate")
LIVE_READ_TIMEOUT_SECONDS: Final = 5.0


class NotAReview(ValueError):
    """The body is not an AdmissionReview."""


class Reviewer:
    """Answers reviews at the enabled paths."""

    def __init__(
        self,
        chain: Callable[[], AdmissionChain],
        mirror: Mirror,
        client: Client,
        *,
        record: Callable[[Record], None] = lambda _: None,
    ) -> None:
        self._chain, self._mirror, self._client, self._record = chain, mirror, client, record

    async def answer(self, path: str, body: bytes) -> bytes:
        """The encoded answer; a body that is no review is denied."""
        try:
            uid, attributes = read_review(body)
        except NotAReview as error:
            return encode_answer("", deny(str(error)))
        attributes = msgspec.structs.replace(attributes, at=self._mirror.now)
        answer = await self._decide(BY_PATH[path], attributes)
        if not attributes.dry_run:
            for notice in answer.notices:
                self._record(event_about(attributes, notice))
        return encode_answer(uid, answer)

    async def _decide(self, webhook: Webhook, attributes: Attributes) -> ReviewAnswer:
        if webhook.path == RESERVATIONS_VALIDATE:
            now = await self._live(Queue, Node, Reservation)
            unread = deny("queues, nodes and reservations could not be read, so it cannot be checked; try again")
            return unread if now is None else self._chain().answer(webhook, attributes, now)
        answer = self._chain().answer(webhook, attributes, self._mirror)
        needs_fresh = webhook.path == "/queues/validate" or bool(answer.denial)
        if webhook.path not in READS_QUEUES or not needs_fresh:
            return answer
        fresh = await self._live(Queue)
        return answer if fresh is None else self._chain().answer(webhook, attributes, fresh)

    async def _live(self, *kinds: type[Resource]) -> Reader | None:
        """Objects of these kinds as they are now; None when they cannot be read in time."""
        fresh = Mirror(lambda: self._mirror.now, INDEXES)
        try:
            async with asyncio.timeout(LIVE_READ_TIMEOUT_SECONDS):
                for kind in kinds:
                    for resource in (await self._client.list(kind)).items:
                        fresh.put(resource)
        except (ApiError, ConnectionError, OSError, TimeoutError, msgspec.DecodeError, RecursionError) as error:
            log.warning("%s could not be read live: %s", ", ".join(kind.__name__ for kind in kinds), error)
            return None
        for namespace in self._mirror.all(Namespace):
            fresh.put(namespace)
        return fresh


def read_review(body: bytes) -> tuple[str, Attributes]:
    """The request's uid and its attributes."""
    try:
        review: Any = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NotAReview(f"the AdmissionReview cannot be decoded: {error}") from error
    request = review.get("request") if isinstance(review, dict) else None
    if not isinstance(request, dict) or review.get("apiVersion") != VERSION:
        raise NotAReview(f"expect an AdmissionReview of {VERSION} with a request")
    resource, kind, user = (_object(request.get(name)) for name in ("resource", "kind", "userInfo"))
    attributes = Attributes(
        operation=_text(request.get("operation")),
        resource=ResourceType(
            _text(resource.get("group")), _text(resource.get("version")), _text(kind.get("kind")),
            _text(resource.get("resource")),
        ),
        name=_text(request.get("name")),
        namespace=_text(request.get("namespace")),
        object=request.get("object"),
        old=request.get("oldObject"),
        user=User(_text(user.get("username"))),
        subresource=_text(request.get("subResource")),
        dry_run=request.get("dryRun") is True,
    )  # fmt: skip
    return _text(request.get("uid")), attributes


def encode_answer(uid: str, answer: ReviewAnswer) -> bytes:
    response: JSON = {"uid": uid, "allowed": not answer.denial}
    if answer.denial:
        response["status"] = {"message": answer.denial}
    elif answer.changes:
        response["patchType"] = "JSONPatch"
        response["patch"] = base64.b64encode(msgspec.json.encode(answer.patch)).decode()
    if answer.warnings:
        response["warnings"] = list(answer.warnings)
    return msgspec.json.encode({"apiVersion": VERSION, "kind": "AdmissionReview", "response": response})


def _object(value: Any) -> JSON:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
