"""Reservations on a real API server: the scheduler, with the chart's rights, reads them and writes their status."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tests.running_server import Client
from volcano.api.times import timestamp

from .real_system import RealSystem

PATH = "/apis/reservation.volcano.sh/v1alpha1/reservations"


async def test_a_reservation_has_a_status(system: RealSystem, api: Client):
    node = api.get("/api/v1/nodes").body["items"][0]["metadata"]["name"]
    start = timestamp(datetime.now(UTC) + timedelta(hours=1))
    body = {
        "apiVersion": "reservation.volcano.sh/v1alpha1", "kind": "Reservation", "metadata": {"name": "kept"},
        "spec": {"start": start, "duration": "10m", "queue": "default", "nodes": [node]},
    }  # fmt: skip

    assert api.create(PATH, body).status == 201

    await system.until(lambda: api.get(f"{PATH}/kept").body.get("status", {}).get("phase") == "Waiting")
    assert api.delete(f"{PATH}/kept").status == 200
