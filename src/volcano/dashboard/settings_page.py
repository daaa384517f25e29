"""Settings: the scheduler's configuration in force with what the linter says of it, and what the scheduler does."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from volcano import __version__
from volcano.api.core import ConfigMap
from volcano.api.errors import ApiError
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.dashboard.object_reads import of_scheduler
from volcano.dashboard.view import CallerView

CONFIGURATION: Final = Key("volcano-system", "volcano-scheduler-configmap")
ENTRY: Final = "volcano-scheduler.conf"


class SettingsPage(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    version: str
    state: JSON
    problem: str
    configuration: str
    configuration_problem: str
    is_of_now: bool = False  # asked for a past moment, whose configuration is not kept


async def settings_page(view: CallerView) -> SettingsPage:
    client = view.caller.client
    state: JSON = {}
    problem = text = text_problem = ""
    try:
        state = await of_scheduler(client, "/state")
    except ApiError as error:
        problem = f"the scheduler cannot be asked: {error.message}"
    try:
        found = await client.get_json(resource_type(ConfigMap), CONFIGURATION)
        text = str((found.get("data") or {}).get(ENTRY) or "")
    except ApiError as error:
        text_problem = error.message
    return SettingsPage(view.now, __version__, state, problem, text, text_problem)
