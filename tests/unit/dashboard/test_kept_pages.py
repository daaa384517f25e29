"""A page that is kept for others is given to those whose rights have the same answers, and to nobody else."""

from __future__ import annotations

from tests.unit.dashboard.visiting import ADMIN
from volcano.api.batch import Job
from volcano.dashboard.callers import Caller, RightsUsed
from volcano.dashboard.kept_pages import KeptPages
from volcano.machinery.transport import Response, User
from volcano.testing.system import VirtualSystem, on_virtual_time

PAGE = ("/jobs", (), True, (1,), 0)


def caller(system: VirtualSystem, user: User) -> Caller:
    return Caller(user.name, user.groups, system.system.client_of(user, "dashboard"), system.clock)


def test_a_page_is_for_everybody_with_the_same_rights():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        admin, other = caller(system, ADMIN), caller(system, User("second", ADMIN.groups))
        stranger = caller(system, User("tina", ("system:authenticated",)))
        rights, pages = RightsUsed(admin), KeptPages()
        assert (await rights.sight(Job, lambda: ["default"])).everything
        pages.keep(PAGE, "session-1", Response(200, {}, b"all jobs"), rights)

        found = [await pages.find(PAGE, "another session", each) for each in (other, stranger)]
        changed = await pages.find((*PAGE[:3], (2,), 0), "session-1", admin)

        assert [each.body if each is not None else None for each in found] == [b"all jobs", None]
        assert changed is None


def test_a_page_of_a_session_is_for_that_session_alone():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        admin, pages = caller(system, ADMIN), KeptPages()
        pages.keep(PAGE, "session-1", Response(200, {}, b"with the secret of its forms"), None)

        assert await pages.find(PAGE, "session-2", admin) is None
        assert await pages.find(PAGE, "session-1", admin) is not None
