"""`volcano replay`: one JSON object a line for every file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from volcano.scheduler.service.replay import replay_command, replay_scenario
from volcano.testing.clusters import cluster, gang

CONF = """
actions: "enqueue, allocate"
tiers:
- plugins: [{name: gang}, {name: predicates}, {name: nodeorder}]
"""


def scenario(**more: Any) -> dict[str, Any]:
    given = cluster(nodes={"n1": "cpu=2", "n2": "cpu=1"}, jobs={"a": gang(2)})
    return {"name": "two tasks", "schedulerConf": CONF, "objects": given.objects, **more}


def test_every_file_is_a_line_as_often_as_asked_and_a_bad_one_says_why(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps(scenario()))
    bad.write_text("{}")

    result = CliRunner().invoke(replay_command, ["--scores", "--repeat", "2", str(good), str(bad)])

    lines = [json.loads(line) for line in result.output.splitlines()]
    assert [line["file"] for line in lines] == [str(good)] * 2 + [str(bad)] * 2
    assert set(lines[0]["binds"]) == {"default/a-0", "default/a-1"}
    assert lines[0]["fits"]["default/a-0"] == ["n1", "n2"]
    assert set(lines[0]["seconds"]) == {"snapshot", "open", "enqueue", "allocate", "cycle"}
    assert "no objects" in lines[2]["error"]
    assert result.exit_code == 1


def test_the_seed_decides_ties_and_nothing_else_does() -> None:
    given = cluster(nodes={f"n{i}": "cpu=1" for i in range(8)}, jobs={"a": gang(1)})
    case = {"schedulerConf": CONF, "objects": given.objects}

    chosen = [replay_scenario({**case, "seed": seed})["binds"]["default/a-0"] for seed in range(20)]

    assert len(set(chosen)) > 1
    assert chosen == [replay_scenario({**case, "seed": seed})["binds"]["default/a-0"] for seed in range(20)]


def test_a_recorded_time_and_usage_are_taken_over() -> None:
    usage = {"n1": {"cpu": 95.0, "memory": 10.0, "measured": "2026-01-01T00:00:00+00:00"}}
    conf = 'actions: "enqueue, allocate"\ntiers: [{plugins: [{name: gang}, {name: usage}]}]'

    outcome = replay_scenario(
        scenario(schedulerConf=conf, now="2026-01-01T00:01:00+00:00", state={"usage": usage}), scores=True
    )

    assert outcome["fits"]["default/a-0"] == ["n2"]
