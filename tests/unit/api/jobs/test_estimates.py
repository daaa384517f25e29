"""Stated and learned estimates: what is accepted, and what is refused with which words."""

from __future__ import annotations

from datetime import timedelta

import pytest

from volcano.api.batch import Job
from volcano.api.decode import decode_object
from volcano.api.jobs.estimates import (
    ESTIMATE_KEY,
    LEARNED_KEY,
    LearnedEstimate,
    annotation_problem,
    encode_learned,
    estimate_problem,
    learned_estimate,
    name_without_number,
    parse_time_limit,
    stated_estimate,
)


@pytest.mark.parametrize(
    "text", ["-5m", "0s", "0", "", "soon", "10", "9000h", "1e9h", "999999999h", "5 minutes", "∞", "9" * 400 + "h"]
)
def test_an_estimate_that_makes_no_sense_is_refused_with_its_path(text: str) -> None:
    problem = estimate_problem("spec.runningEstimate", text)

    assert problem.startswith("spec.runningEstimate: Invalid value: ")
    assert "must be a duration above 0s and of at most 8784h" in problem
    assert stated_estimate({ESTIMATE_KEY: text}) is None
    assert f"metadata.annotations[{ESTIMATE_KEY}]" in annotation_problem({ESTIMATE_KEY: text})


@pytest.mark.parametrize(("text", "seconds"), [("10m", 600), ("1h30m", 5400), ("8784h", 31622400), ("1.5s", 1.5)])
def test_a_duration_is_an_estimate(text: str, seconds: float) -> None:
    assert estimate_problem("spec.runningEstimate", text) == ""
    assert stated_estimate({ESTIMATE_KEY: text}) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 5400), ("10:30", 630), ("1:30:00", 5400), ("2-12", 216000), ("1-00:30", 88200), ("1h", 3600)],
)
def test_a_time_limit_may_be_written_as_slurm_writes_it(text: str, seconds: int) -> None:
    assert parse_time_limit(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["0", "-5", "1:2:3:4", "9999-00", "x", "1-"])
def test_a_time_limit_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be a duration"):
        parse_time_limit(text)


@pytest.mark.parametrize(
    "text", ["", "{", '{"p50": 5}', '{"p50":9,"p90":5,"runs":1}', '{"p50":-1,"p90":5,"runs":1}', "x" * 1000]
)
def test_a_learned_estimate_that_cannot_be_read_is_ignored(text: str) -> None:
    assert learned_estimate({LEARNED_KEY: text}) is None


def test_a_learned_estimate_is_read_as_it_was_written() -> None:
    learned = LearnedEstimate(60.0, 90.0, 12)

    assert learned_estimate({LEARNED_KEY: encode_learned(learned)}) == learned


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"name": "train-17"}, "train"),
        ({"name": "train17"}, "train"),
        ({"name": "train"}, "train"),
        ({"name": "2024"}, "2024"),
        ({"name": "sweep-x7k2p", "generateName": "sweep-"}, "sweep"),
        ({"name": "step-3-of-4"}, "step-3-of"),
    ],
)
def test_runs_of_one_job_share_the_name_without_its_number(metadata: dict[str, str], name: str) -> None:
    assert name_without_number(decode_object(Job, {"metadata": metadata})) == name
