"""Mutating and ValidatingWebhookConfigurations, called over HTTPS as Kubernetes does.

Order by configuration name, rules, selectors, match conditions
(webhook_matching), timeouts, failure policies, JSON patches, and the reinvocation of webhooks that ask for it.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import copy
from collections.abc import Iterator
from typing import Final

import msgspec

from volcano.api.errors import ApiError, BadRequest, InternalError, ServiceUnavailable, error_from
from volcano.api.meta import JSON
from volcano.embedded.apiserver.admitting.webhook_matching import concerns
from volcano.embedded.apiserver.store.contract import Store
from volcano.embedded.apiserver.wire.webhook_client import WebhookClient, WebhookFailed
from volcano.machinery.admission import DELETE, Attributes
from volcano.machinery.ids import Ids
from volcano.machinery.patch import PatchError, json_patch

GROUP: Final = "admissionregistration.k8s.io"
MUTATING: Final = f"mutatingwebhookconfigurations.{GROUP}"
VALIDATING: Final = f"validatingwebhookconfigurations.{GROUP}"
DEFAULT_TIMEOUT_SECONDS: Final = 10
MAX_TIMEOUT_SECONDS: Final = 30
_EXEMPT: Final = frozenset((MUTATING, VALIDATING))


class Webhooks:
    def __init__(self, store: Store, client: WebhookClient, ids: Ids) -> None:
        self._store = store
        self._client = client
        self._ids = ids

    @property
    def any_mutating(self) -> bool:
        return self._store.count(MUTATING) > 0

    @property
    def any_validating(self) -> bool:
        return self._store.count(VALIDATING) > 0

    async def mutate(self, attributes: Attributes) -> tuple[JSON | None, list[str]]:
        """Call all matching webhooks in sequence; each gets the object as the ones before it left it."""
        warnings: list[str] = []
        called: list[tuple[JSON, JSON | None]] = []
        for webhook in self._matching(MUTATING, attributes):
            before = copy.deepcopy(attributes.object)
            attributes = await self._mutate_once(webhook, attributes, warnings)
            called.append((webhook, attributes.object))
            if attributes.object != before:
                attributes = await self._reinvoke(called[:-1], attributes, warnings)
        return attributes.object, warnings

    async def _reinvoke(
        self, called: list[tuple[JSON, JSON | None]], attributes: Attributes, warnings: list[str]
    ) -> Attributes:
        """Reinvoke the webhooks that ask for it, if a later one changed the object."""
        for number, (webhook, seen) in enumerate(called):
            if (
                webhook.get("reinvocationPolicy") == "IfNeeded"
                and seen != attributes.object
                and not webhook.get("_reinvoke")
            ):
                called[number] = ({**webhook, "_reinvoke": True}, attributes.object)
                attributes = await self._mutate_once(webhook, attributes, warnings)
        return attributes

    async def _mutate_once(self, webhook: JSON, attributes: Attributes, warnings: list[str]) -> Attributes:
        answer = await self._call(webhook, attributes, warnings)
        patch = answer.get("patch") if answer else None
        if not patch or attributes.object is None:
            return attributes
        try:
            operations = msgspec.json.decode(base64.b64decode(patch))
            changed = json_patch(attributes.object, operations)
        except (PatchError, binascii.Error, msgspec.DecodeError, TypeError, RecursionError) as error:
            raise InternalError(
                f"failed calling webhook {_name(webhook)}: the patch cannot be applied: {error}"
            ) from error
        return msgspec.structs.replace(attributes, object=changed)

    async def validate(self, attributes: Attributes) -> list[str]:
        """Call all matching webhooks in parallel; the first refusal is raised."""
        warnings: list[str] = []
        matching = list(self._matching(VALIDATING, attributes))
        calls = (self._call(webhook, attributes, warnings) for webhook in matching)
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return warnings

    def _matching(self, resource: str, attributes: Attributes) -> Iterator[JSON]:
        if attributes.resource.qualified in _EXEMPT:
            return
        for stored in self._store.scan(resource):
            configuration: JSON = msgspec.json.decode(stored.raw)
            for webhook in configuration.get("webhooks") or []:
                if isinstance(webhook, dict) and concerns(webhook, attributes, self._store):
                    yield webhook

    async def _call(self, webhook: JSON, attributes: Attributes, warnings: list[str]) -> JSON | None:
        """The webhook's answer; None when the call failed and the failure policy is Ignore."""
        if attributes.dry_run and webhook.get("sideEffects") not in ("None", "NoneOnDryRun"):
            raise BadRequest(f"admission webhook {_name(webhook)} does not support dry run")
        review = _review(attributes, self._ids.uid())
        seconds = max(1, min(int(webhook.get("timeoutSeconds") or DEFAULT_TIMEOUT_SECONDS), MAX_TIMEOUT_SECONDS))
        try:
            async with asyncio.timeout(seconds):
                answer = await self._post(webhook, review, seconds)
        except (ServiceUnavailable, TimeoutError, WebhookFailed) as error:
            if webhook.get("failurePolicy", "Fail") == "Ignore":
                return None
            why = "context deadline exceeded" if isinstance(error, TimeoutError) else str(error)
            raise InternalError(f"Internal error occurred: failed calling webhook {_name(webhook)}: {why}") from error
        warnings += [str(text) for text in answer.get("warnings") or [] if isinstance(text, str)]
        if not answer.get("allowed"):
            raise _refusal(webhook, answer)
        return answer

    async def _post(self, webhook: JSON, review: JSON, seconds: int) -> JSON:
        config = webhook.get("clientConfig") or {}
        answer = await self._client.post(config, review, float(seconds), query=(("timeout", f"{seconds}s"),))
        try:
            found: JSON = answer["response"]
        except (KeyError, TypeError):
            raise WebhookFailed("the answer is no AdmissionReview") from None
        if not isinstance(found, dict) or found.get("uid") != review["request"]["uid"]:
            raise WebhookFailed("the answer's uid is not the request's")
        return found


def _name(webhook: JSON) -> str:
    return f'"{webhook.get("name", "")}"'


def _review(attributes: Attributes, uid: str) -> JSON:
    row = attributes.resource
    kind = {"group": row.group, "version": row.version, "kind": row.kind}
    resource = {"group": row.group, "version": row.version, "resource": row.plural}
    request: JSON = {
        "uid": uid,
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": attributes.name,
        "operation": attributes.operation,
        "userInfo": {
            "username": attributes.user.name,
            "groups": list(attributes.user.groups),
            **({"uid": attributes.user.uid} if attributes.user.uid else {}),
        },
        "object": None if attributes.operation == DELETE else attributes.object,
        "oldObject": attributes.old,
        "dryRun": attributes.dry_run,
        "options": None,
    }
    if attributes.namespace:
        request["namespace"] = attributes.namespace
    if attributes.subresource:
        request["subResource"] = request["requestSubResource"] = attributes.subresource
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}


def _refusal(webhook: JSON, answer: JSON) -> ApiError:
    status = answer.get("status")
    status = status if isinstance(status, dict) else {}
    message = status.get("message") or status.get("reason")
    text = f"admission webhook {_name(webhook)} denied the request"
    text += f": {message}" if message else " without explanation"
    code = status.get("code")
    if not isinstance(code, int) or not 400 <= code < 600:
        code = 400  # as Kubernetes does: a refusal without a code is the request's fault
    return error_from(code, {**status, "kind": "Status", "message": text})
