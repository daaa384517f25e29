"""`volcano run` shows why a job will not run without a change, and what to change; a job that waits its turn gets none."""

import asyncio
import io
from datetime import timedelta

from tests.stories.builders import a_job, a_task
from tests.system.explain.asking import FOUR_CPUS, explained, with_spec
from volcano.api.meta import Key
from volcano.cli.live.job_follower import JobFollower
from volcano.cli.live.run_view import PlainView
from volcano.testing.system import on_virtual_time


async def shown(system, *names, until):
    """What is printed until this is among it."""
    out = io.StringIO()
    view = PlainView(out)
    keys = [Key("default", name) for name in names]
    following = asyncio.ensure_future(
        JobFollower(system.client, system.clock, view, keys, logs=False, advise=view.advise).follow()
    )
    await system.until(lambda: until in out.getvalue(), why=f"{until!r} is not shown")
    await system.clock.sleep(timedelta(minutes=1))
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    return out.getvalue()


def test_a_job_that_will_never_run_says_so_with_why_and_what_to_change():
    @on_virtual_time(nodes=2, capacity=FOUR_CPUS)
    async def story(system):
        await system.apply(a_job("large", a_task(replicas=2, cpu="6")))

        text = await shown(system, "large", until="will not run")

        found = await explained(system, "large")
        assert text.count("will not run without a change") == 1
        assert f"job/large will not run without a change: {found.text}\n" in text
        assert "  needs a change by you; waiting alone does not help\n" in text
        assert f"  1. {found.changes[0].sentence}: vcctl explain vcjob/large --apply 1\n" in text
        assert f"job/large waits: {found.text}\n" in text or f"job/large Pending: {found.text}\n" in text


def test_a_job_that_waits_its_turn_only_says_for_what():
    @on_virtual_time(nodes=1, capacity=FOUR_CPUS)
    async def story(system):
        await system.apply(a_job("first", a_task(cpu="4")))
        await system.until(lambda: system.phase("first") == "Running")
        await system.apply(a_job("second", with_spec(a_task(cpu="4"))))

        text = await shown(system, "first", "second", until="held by first")

        assert "will not run" not in text
