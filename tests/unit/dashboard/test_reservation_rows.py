"""Reservations on the pages about queues: for whom, when, how much, and only for those who may list them."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.dashboard.visiting import signed_in
from volcano.api.reservation import Reservation
from volcano.api.scheme import resource_type
from volcano.api.times import timestamp
from volcano.machinery.transport import User
from volcano.testing.system import VirtualSystem, on_virtual_time

RESERVATIONS = resource_type(Reservation)


def test_reservations_are_shown_with_their_holder_and_window():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        start = timestamp(system.clock.now() + timedelta(hours=2))
        for name, more in (("course", {"queue": "default"}), ("repair", {"maintenance": True, "nodes": ["sim-0"]})):
            spec = {"start": start, "duration": "1h", "resources": {"cpu": "2"}, **more}
            await system.client.create(RESERVATIONS, {"metadata": {"name": name}, "spec": spec})
        visitor = await signed_in(system)
        stranger = await signed_in(system, User("tina", ("system:authenticated",)))

        queues, queue = await visitor.json("/api/v1/queues"), await visitor.json("/api/v1/queues/default")
        hidden = await stranger.json("/api/v1/queues")
        page = await visitor.text("/queues")

        assert [(row["name"], row["holder"]) for row in queues["reservations"]] == [
            ("course", "queue default"),
            ("repair", "maintenance"),
        ]
        assert queues["reservations"][0]["start"] == start
        assert queues["reservations"][1]["nodes"] == ["sim-0"]
        assert [row["name"] for row in queue["reservations"]] == ["course"]
        assert hidden["reservations"] == []
        assert "repair" in page and "maintenance" in page
        await visitor.dashboard.close()
        await stranger.dashboard.close()
