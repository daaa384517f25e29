"""Changes that name another queue are shown only if the person who asks may submit there.

Volcano has no rules about who may use a queue: a cluster has them as admission policies or webhooks. So the API server
decides, by a dry run of the submission under the person's own name; nothing is created.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from volcano.api.errors import ApiError
from volcano.api.meta import JSON
from volcano.api.scheme import find_resource_type
from volcano.api.why.answers import ProposedChange, WhyAnswer
from volcano.machinery.client import Client
from volcano.machinery.patch import PatchError, json_patch

QUEUE: Final = "/spec/queue"
REFUSED: Final = (400, 403, 422)


async def with_permitted_changes(client: Client, found: WhyAnswer, body: JSON | None) -> WhyAnswer:
    """`body` is the object that was asked about."""
    kept = [each for each in found.changes if not _names_queue(each) or await _may_submit(client, each, body)]
    return found if len(kept) == len(found.changes) else msgspec.structs.replace(found, changes=kept)


def _names_queue(change: ProposedChange) -> bool:
    return any(operation.get("path") == QUEUE for operation in change.patch)


async def _may_submit(client: Client, change: ProposedChange, body: JSON | None) -> bool:
    row = find_resource_type(change.object.api_version.rpartition("/")[0], change.object.kind)
    if row is None or body is None:
        return True
    try:
        patched: Any = json_patch(body, change.patch)
        metadata = {
            "generateName": f"{change.object.name}-",
            "namespace": change.object.namespace,
            **{name: patched["metadata"][name] for name in ("labels", "annotations") if patched["metadata"].get(name)},
        }
        await client.create(row, {"metadata": metadata, "spec": patched.get("spec") or {}}, dryRun="All")
    except ApiError as error:
        return error.code not in REFUSED
    except (PatchError, KeyError, TypeError):
        return True
    return True
