"""The objects that the embedded system makes of itself."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.app.system import (
    CONFIGMAPS,
    CONTROLLERS_SERVICE,
    HELM_RELEASE,
    SCHEDULER_SERVICE,
    ensure_configuration,
)
from volcano.install.installation import installation
from volcano.install.values import Values


class Created:
    """Keeps what is created."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []

    async def create(self, _resource: Any, body: Any) -> None:
        self.bodies.append(body)


def chart_object(kind: str, name: str) -> Any:
    return next(
        (each for each in installation(Values({})) if (each["kind"], each["metadata"]["name"]) == (kind, name)), None
    )


async def test_helm_takes_over_the_configuration():
    client: Any = Created()

    await ensure_configuration(client)

    [body] = client.bodies
    in_chart = chart_object(CONFIGMAPS.kind, body["metadata"]["name"])
    assert body["metadata"]["namespace"] == in_chart["metadata"]["namespace"]
    assert body["metadata"]["labels"] == HELM_RELEASE["labels"]
    assert body["metadata"]["annotations"] == HELM_RELEASE["annotations"]
    assert body["data"] == in_chart["data"]  # otherwise a server-side apply of the chart would conflict


@pytest.mark.parametrize("service", [SCHEDULER_SERVICE, CONTROLLERS_SERVICE], ids=lambda each: each.name)
def test_helm_takes_over_services_that_the_chart_has_too(service):
    body, in_chart = service.body(), chart_object("Service", service.name)

    assert body["metadata"]["annotations"] == HELM_RELEASE["annotations"]
    assert HELM_RELEASE["labels"].items() <= body["metadata"]["labels"].items()
    assert in_chart is None or body["spec"]["ports"] == in_chart["spec"]["ports"]
