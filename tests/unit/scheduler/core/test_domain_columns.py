"""Domains as columns: rows, homes and sums."""

from __future__ import annotations

import numpy as np

from volcano.scheduler.core.domain_columns import DomainColumns
from volcano.scheduler.model.domain import domains_from_lists, with_root
from volcano.testing.clusters import cluster

RACKS = {"r1": ["n1", "n2"], "r2": ["n3"], "s": ["n1", "n2", "n3"]}
INDEX = {"n1": 0, "n2": 1, "n3": 2, "n4": 3}


def columns() -> DomainColumns:
    domains = domains_from_lists({**RACKS, "gone": ["n9"]}, {"1": ["r1", "r2", "gone"], "2": ["s"]})
    return DomainColumns(with_root(domains, INDEX), INDEX)


def test_every_domain_knows_its_rows_and_nodes_that_are_not_there_do_not_count() -> None:
    given = columns()

    assert given.rows_of("r1").tolist() == [0, 1]
    assert given.mask_of("s").tolist() == [True, True, True, False]
    assert given.sizes[given.place["gone"]] == 0


def test_a_node_lies_in_all_domains_around_it() -> None:
    given = columns()

    around = {given.domains[place].name for place in given.places_of(0).tolist()}

    assert around == {"r1", "s", "<cluster-top-hypernode>"}


def test_the_lowest_domain_of_a_node_outside_all_is_the_root() -> None:
    given = columns()

    assert [given.domains[place].name for place in given.lowest.tolist()] == [
        "r1",
        "r1",
        "r2",
        "<cluster-top-hypernode>",
    ]
    assert given.homes[2][3] == -1


def test_sums_are_over_all_rows_of_each_domain() -> None:
    given = columns()

    (summed,) = given.sums(np.array([[1.0, 2.0, 4.0, 8.0]]))

    assert {domain.name: summed[place] for place, domain in enumerate(given.domains)} == {
        "r1": 3.0,
        "r2": 4.0,
        "gone": 0.0,
        "s": 7.0,
        "<cluster-top-hypernode>": 15.0,
    }


def test_a_snapshot_keeps_them_until_nodes_or_domains_change() -> None:
    snapshot = cluster(nodes={"n1": "cpu=1", "n2": "cpu=1"}, extra={"hyperNodeRealNodes": {"r": ["n1"]}}).snapshot()

    first = snapshot.rooted_domains()
    again = snapshot.rooted_domains()
    snapshot.table.remove("n2")
    after = snapshot.rooted_domains()

    assert again is first
    assert after is not first
    assert len(after.columns.lowest) == 1
