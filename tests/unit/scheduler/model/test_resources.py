"""Resources: Volcano's comparisons, to the letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.scheduler.model.resources import GREATEST, Resources, dominant_share, is_counted, ratio, resources_from

GPU = "nvidia.com/gpu"


def of(cpu: float = 0, memory: float = 0, **scalars: float) -> Resources:
    return Resources({"cpu": cpu, "memory": memory, **{name.replace("_", "/"): v for name, v in scalars.items()}})


@pytest.mark.parametrize(
    ("amount", "limit", "expected"),
    [
        (of(1000), of(1000), True),
        (of(1000.05), of(1000), True),
        (of(1000.1), of(1000), False),
        (of(0, pods=1), of(0), False),
        (of(0), of(0, pods=1), True),
        (of(0, a_b=5), of(9), False),
    ],
)
def test_an_amount_fits_within_the_tolerance_in_every_dimension_it_has(
    amount: Resources, limit: Resources, expected: bool
) -> None:
    assert amount.fits(limit) is expected


def test_only_requested_dimensions_are_compared_strictly_and_never_pods() -> None:
    held, limit = of(1000, 5, pods=9, a_b=2), of(1000, 4, pods=1, a_b=1)

    assert held.exceeds_requested(limit, of(1, 1, pods=1, a_b=1)) == ["memory", "a/b"]
    assert held.within_requested(limit, of(1))
    assert of(1000.01).exceeds_requested(of(1000), of(1)) == ["cpu"]


def test_partly_within_needs_one_dimension_of_which_there_is_anything() -> None:
    assert of(5, 1).partly_within(of(1, 1), of(1, 1))
    assert not of(5, 0).partly_within(of(1, 0), of(1, 1))


def test_a_limit_speaks_of_a_scalar_by_naming_it_and_of_cpu_by_being_positive() -> None:
    assert of(1, a_b=1).beyond_stated(of(0, a_b=0), of(1, a_b=1))
    assert not of(1).beyond_stated(of(0), of(1))


def test_minimum_keeps_own_dimensions_and_maximum_takes_both() -> None:
    assert of(5, 5, a_b=5).limited(of(3, 9), missing_is_infinite=True) == of(3, 5, a_b=5)
    assert of(5, 5, a_b=5).limited(of(3, 9), missing_is_infinite=False) == of(3, 5, a_b=0)
    assert of(5, a_b=-1).at_least(of(3, 1, c_d=2)) == of(5, 1, a_b=0, c_d=2)


def test_units_and_names_are_read_as_volcano_does() -> None:
    read = resources_from(
        {"cpu": "1500m", "memory": "1Ki", "pods": "3", GPU: "2", "ephemeral-storage": "1", "count/x": 1, "storage": 1}
    )

    assert read.amounts == {"cpu": 1500, "memory": 1024, "pods": 3, GPU: 2000, "ephemeral-storage": 1000}
    assert [is_counted(name) for name in ("hugepages-2Mi", "requests.nvidia.com/gpu", "storage")] == [
        True,
        False,
        False,
    ]


def test_shares_of_nothing() -> None:
    assert (ratio(0, 0), ratio(1, 0), ratio(1, 2)) == (0.0, 1.0, 0.5)
    assert dominant_share(of(2, 5), of(10, 10)) == 0.5


def test_the_text_names_scalars_in_order_and_extremes_by_word() -> None:
    assert str(of(GREATEST, 2, b_b=1, a_a=2.0**63)) == "cpu maxFloat, memory 2.00, a/a maxInt, b/b 1.00"


amounts = st.builds(
    lambda cpu, memory, gpu: Resources({"cpu": cpu, "memory": memory, **({GPU: gpu} if gpu else {})}),
    st.integers(0, 10**6).map(float),
    st.integers(0, 2**50).map(float),
    st.integers(0, 10**5).map(float),
)


@given(amounts, amounts)
def test_what_was_added_can_be_withdrawn_without_a_trace(one: Resources, other: Resources) -> None:
    before = one.copy()

    one.add(other).withdraw(other)

    assert one == before


@given(amounts, amounts)
def test_what_exceeds_is_what_must_go_to_fit(one: Resources, other: Resources) -> None:
    assert (one - one.exceeding(other)).fits(other)
