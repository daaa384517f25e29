"""Objects of a CustomResourceDefinition with conversion strategy Webhook, between the versions it stores and serves.

Definitions without one differ only in their apiVersion, which their strategy sets by itself. What the webhook returns
may differ from what it was sent in anything but identity: of metadata, only labels and annotations are taken over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Final

import msgspec

from volcano.api.errors import ApiError, InternalError, ServiceUnavailable
from volcano.api.meta import JSON
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.store.contract import Stored
from volcano.embedded.apiserver.wire.representation import Renderer
from volcano.embedded.apiserver.wire.webhook_client import WebhookFailed

TIMEOUT_SECONDS: Final = 30.0  # as kube-apiserver's
MOST_OBJECTS_PER_REVIEW: Final = 500
REVIEW_VERSION: Final = "apiextensions.k8s.io/v1"


async def in_asked_version(call: Call, stored: Stored) -> Stored:
    """A stored object as the version that the request names."""
    return (await all_in_asked_version(call, [stored]))[0]


async def all_in_asked_version(call: Call, stored: Sequence[Stored]) -> Sequence[Stored]:
    if call.strategy.conversion is None:
        return stored
    wanted = call.served.type.api_version
    objects = [msgspec.json.decode(each.raw) for each in stored]
    converted = await _converted(call, objects, wanted)
    return [
        each if new is old else Stored(each.key, each.revision, msgspec.json.encode(new), each.index)
        for each, old, new in zip(stored, objects, converted, strict=True)
    ]


async def in_storage_version(call: Call, obj: JSON) -> JSON:
    """An object of the request's version as it is stored."""
    if call.strategy.conversion is None:
        return call.strategy.to_stored(obj)
    row = call.served.type
    return (await _converted(call, [obj], f"{row.group}/{call.served.storage_version}"))[0]


class AsStored:
    """The Form of a watch whose events are converted behind it."""

    def __init__(self, shown: Renderer) -> None:
        self.key = "as stored"
        self.bookmark = shown.bookmark

    def of(self, raw: bytes) -> bytes:
        return raw


async def converted_events(call: Call, shown: Renderer, stream: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Events of stored objects as events of the version asked for; one that cannot be converted ends the watch."""
    async with aclosing(stream) as events:  # type: ignore[type-var]
        async for chunk in events:
            told = [msgspec.json.decode(line) for line in chunk.splitlines()]
            objects = [event["object"] for event in told if event["type"] in ("ADDED", "MODIFIED", "DELETED")]
            try:
                converted = iter(await _converted(call, objects, call.served.type.api_version))
            except ApiError as error:
                yield _event("ERROR", msgspec.json.encode(error.status()))
                return
            yield b"".join(
                _event(event["type"], shown.of(msgspec.json.encode(next(converted))))
                if event["type"] in ("ADDED", "MODIFIED", "DELETED")
                else _event(event["type"], msgspec.json.encode(event["object"]))
                for event in told
            )


def _event(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), raw)


async def _converted(call: Call, objects: Sequence[JSON], wanted: str) -> list[JSON]:
    """All objects in a version; those that are in it already are returned as they are."""
    found = list(objects)
    others = [number for number, obj in enumerate(found) if obj.get("apiVersion") != wanted]
    for start in range(0, len(others), MOST_OBJECTS_PER_REVIEW):
        numbers = others[start : start + MOST_OBJECTS_PER_REVIEW]
        given = [found[number] for number in numbers]
        for number, old, new in zip(numbers, given, await _review(call, given, wanted), strict=True):
            found[number] = _same_object(call, old, new, wanted)
    return found


async def _review(call: Call, objects: Sequence[JSON], wanted: str) -> Sequence[Any]:
    rule, uid = call.strategy.conversion, call.backend.ids.uid()
    assert rule is not None
    request = {"uid": uid, "desiredAPIVersion": wanted, "objects": list(objects)}
    review = {"kind": "ConversionReview", "apiVersion": REVIEW_VERSION, "request": request}
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            answer = await call.backend.webhooks.post(rule, review, TIMEOUT_SECONDS)
        response = answer["response"]
        result, converted = response["result"], response.get("convertedObjects")
        if response.get("uid") != uid:
            raise WebhookFailed(f'expected response.uid="{uid}", got "{response.get("uid")}"')
        if result.get("status") != "Success":
            raise WebhookFailed(str(result.get("message") or "the webhook gives no reason"))
        if not isinstance(converted, list) or len(converted) != len(objects):
            number = len(converted) if isinstance(converted, list) else 0
            raise WebhookFailed(f"returned {number} objects, expected {len(objects)}")
    except (KeyError, TypeError, AttributeError) as error:
        raise _failed(call, objects[0], "the answer is no ConversionReview") from error
    except TimeoutError as error:
        raise _failed(call, objects[0], "context deadline exceeded") from error
    except (ServiceUnavailable, WebhookFailed) as error:
        raise _failed(call, objects[0], str(error)) from error
    return converted


def _same_object(call: Call, old: JSON, new: Any, wanted: str) -> JSON:
    """The converted object with the identity of the one that was sent."""
    metadata = new.get("metadata") if isinstance(new, dict) else None
    if not isinstance(metadata, dict):
        raise _failed(call, old, "returned an object without metadata")
    if (new.get("apiVersion"), new.get("kind")) != (wanted, old.get("kind")):
        said = f"{new.get('apiVersion')}, {new.get('kind')}"
        raise _failed(call, old, f"returned an object of {said}, expected {wanted}, {old.get('kind')}")
    before = old.get("metadata") or {}
    for field in ("name", "namespace", "uid"):
        if metadata.get(field) != before.get(field):
            why = f"must be {before.get(field)!r}, not {metadata.get(field)!r}"
            raise _failed(call, old, f"returned an invalid object: metadata.{field}: {why}")
    kept = {field: value for field, value in before.items() if field not in ("labels", "annotations")}
    changed = {field: metadata[field] for field in ("labels", "annotations") if metadata.get(field)}
    return {**new, "metadata": {**kept, **changed}}


def _failed(call: Call, obj: JSON, why: str) -> InternalError:
    return InternalError(f"conversion webhook for {obj.get('apiVersion')}, Kind={call.served.type.kind} failed: {why}")
