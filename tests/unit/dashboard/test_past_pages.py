"""Pages at a past moment and usage, on a system that records its history."""

from __future__ import annotations

from datetime import timedelta

from tests.unit.dashboard.visiting import job, signed_in
from volcano.api.batch import Job
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.api.times import timestamp
from volcano.app.local_history import local_history
from volcano.testing.system import VirtualSystem, on_virtual_time

JOBS = resource_type(Job)


def test_pages_show_what_was_then_and_a_job_that_is_gone_stays_visible():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        async with local_history(system.system, system.clock, path=None):
            await system.client.create(JOBS, job("early"))
            await system.until(lambda: system.phase("early") == "Running")
            await system.clock.sleep(timedelta(minutes=1))
            then = timestamp(system.clock.now())
            await system.clock.sleep(timedelta(minutes=10))
            await system.client.delete(JOBS, Key("default", "early"))
            await system.client.create(JOBS, job("late", cpu="1000"))
            await system.until(lambda: system.mirror.get(Job, Key("default", "early")) is None)
            await system.clock.sleep(timedelta(minutes=1))
            visitor = await signed_in(system)

            before = await visitor.json(f"/api/v1/jobs?at={then}")
            overview = await visitor.json(f"/api/v1/overview?at={then}")
            gone, past = (
                await visitor.json("/api/v1/jobs/default/early"),
                await visitor.text(f"/jobs/default/early?at={then}"),
            )

            assert [(row["name"], row["state"]) for row in before["rows"]] == [("early", "running")]
            assert (overview["states"]["running"], overview["states"]["waiting"]) == (1, 0)
            assert overview["nodes"] == 4 and overview["resources"]
            assert gone["job"]["name"] == "early" and len(gone["roles"][0]["pods"]) == 2
            assert "As it was" in past and "do/delete" not in past
            shown_then = (
                "/queues",
                "/nodes",
                "/jobs?group=queue",
                "/queues/default",
                "/nodes/sim-0",
                "/flows",
                "/topology",
            )
            for address in (*shown_then, "/decisions", "/usage", "/settings"):
                shown = await visitor.text(f"{address}{'&' if '?' in address else '?'}at={then}")
                assert 'data-topics=""' in shown and "As it was" in shown
            assert [row["name"] for row in (await visitor.json("/api/v1/jobs"))["rows"]] == ["late"]
            assert (await visitor.get("/jobs?at=yesterday")).status == 400
            await visitor.dashboard.close()


def test_usage_is_shown_and_given_as_csv():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        async with local_history(system.system, system.clock, path=None):
            await system.client.create(JOBS, job("a", cpu="2"))
            await system.until(lambda: system.phase("a") == "Running")
            await system.clock.sleep(timedelta(minutes=30))
            visitor = await signed_in(system)

            page = await visitor.json("/api/v1/usage?by=queue")
            text = (await visitor.get("/usage.csv?by=queue")).body.decode()

            [row] = page["rows"]
            assert row["queue"] == "default" and 1.9 < row["cpuHours"] < 2.1
            assert text.splitlines()[0].startswith("QUEUE,") and text.splitlines()[1].startswith("default,")
            assert "CPU hours" in await visitor.text("/usage/chart")
            assert "<path" in await visitor.text("/queues/default/chart")
            await visitor.dashboard.close()


def test_without_a_history_the_pages_say_so():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        visitor = await signed_in(system)

        answer = await visitor.get("/usage")

        assert answer.status == 404 and b"there is no history here" in answer.body
        assert (await visitor.get("/jobs/default/none")).status == 404
        await visitor.dashboard.close()
