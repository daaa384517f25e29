"""Strangers compete with anonymous for connections; clients with credentials keep theirs."""

from __future__ import annotations

from volcano.machinery.connections import ConnectionLimits, ConnectionTable


class Conn:
    def __init__(self, *, is_busy: bool = False) -> None:
        self.is_busy = is_busy
        self.is_closed = False

    def close_now(self) -> None:
        self.is_closed = True


def opened(table: ConnectionTable, number: int, address: str = "a", identity: str = "", **options: bool) -> list[Conn]:
    made = [Conn() for _ in range(number)]
    for each in made:
        table.opened(each, address, identity, **options)
    return made


def test_of_too_many_anonymous_at_one_address_the_oldest_idle_one_goes():
    table = ConnectionTable(ConnectionLimits(anonymous=10, anonymous_per_address=3))
    first, second, third = opened(table, 3)
    first.is_busy = True
    table.used(second)

    (fourth,) = opened(table, 1)

    assert [each.is_closed for each in (first, second, third, fourth)] == [False, False, True, False]
    assert len(table) == 3


def test_anonymous_of_many_addresses_are_bounded_together():
    table = ConnectionTable(ConnectionLimits(anonymous=5, anonymous_per_address=3))
    made = [conn for number in range(4) for conn in opened(table, 2, f"a{number}")]

    assert [each.is_closed for each in made] == [True, True, True, False, False, False, False, False]


def test_where_all_are_busy_the_newest_is_refused():
    table = ConnectionTable(ConnectionLimits(anonymous_per_address=2))
    for each in opened(table, 2):
        each.is_busy = True

    (late,) = opened(table, 1)

    assert late.is_closed


def test_a_flood_of_anonymous_closes_no_connection_of_a_user():
    table = ConnectionTable(ConnectionLimits(total=10, anonymous=8, anonymous_per_address=8))
    (token_user,) = opened(table, 1)
    table.proved(token_user, "tina")
    (admin,) = opened(table, 1, identity="admin")

    opened(table, 100)

    assert not token_user.is_closed
    assert not admin.is_closed
    assert len(table) == 10


def test_one_identity_has_its_own_bound():
    table = ConnectionTable(ConnectionLimits(per_identity=2))
    (other,) = opened(table, 1, identity="other")

    mine = opened(table, 3, identity="me")

    assert [each.is_closed for each in mine] == [True, False, False]
    assert not other.is_closed


def test_the_reserve_is_for_those_who_may_use_it():
    table = ConnectionTable(ConnectionLimits(total=2, reserve=1))
    users = opened(table, 3, identity="user")

    (admin,) = opened(table, 1, identity="admin", may_use_reserve=True)

    assert [each.is_closed for each in users] == [False, False, True]
    assert not admin.is_closed


def test_what_was_closed_leaves_nothing_behind():
    table = ConnectionTable(ConnectionLimits())
    made = opened(table, 3) + opened(table, 2, identity="me")

    for each in made:
        table.closed(each)
        table.closed(each)
        table.used(each)
        table.proved(each, "late")

    assert len(table) == 0
    assert table._groups == {}
