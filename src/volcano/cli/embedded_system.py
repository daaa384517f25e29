"""Whether an embedded system that answers requests has also started all its components and registered its nodes."""

from __future__ import annotations

from typing import Final

from volcano.api.errors import ApiError, NotFound
from volcano.machinery.client import Client
from volcano.machinery.transport import Request

COMPONENTS_PATH: Final = "/readyz/components"


async def is_complete(client: Client) -> bool:
    """A server without such a check has no components to wait for."""
    try:
        await client.raw(Request("GET", COMPONENTS_PATH))
    except ApiError as error:
        return isinstance(error, NotFound)
    return True
