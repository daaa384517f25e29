"""A burst at once, then so many per second."""

from volcano.machinery.pace import Pace


def test_a_burst_is_allowed_and_then_a_number_per_second():
    pace = Pace(3, 10, 0.0)
    for _ in range(3):
        assert pace.wait(0.0) == 0
        pace.take(0.0)

    assert round(pace.wait(0.0), 3) == 0.1
    assert pace.wait(0.1) == 0


def test_rest_brings_the_burst_back_and_no_more():
    pace = Pace(2, 10, 0.0)
    for _ in range(2):
        pace.take(0.0)

    for _ in range(2):
        assert pace.wait(100.0) == 0
        pace.take(100.0)

    assert pace.wait(100.0) > 0


def test_a_clock_that_goes_back_gives_nothing():
    pace = Pace(1, 10, 10.0)
    pace.take(10.0)

    assert pace.wait(5.0) > 0
