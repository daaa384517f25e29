"""The graph of a flow, drawn."""

from datetime import UTC, datetime

from volcano.cli.flow_view import layered, lines

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_flow(**steps):
    flows = [{"name": name, **({"dependsOn": {"targets": after}} if after else {})} for name, after in steps.items()]
    return {"metadata": {"name": "f"}, "spec": {"flows": flows}, "status": {"state": {"phase": "Running"}}}


def test_steps_stand_below_what_they_wait_for():
    assert layered({"d": ["b", "c"], "a": [], "b": ["a"], "c": ["a"]}) == {"a": 0, "b": 1, "c": 1, "d": 2}


def test_a_cycle_or_an_unknown_step_is_drawn_all_the_same():
    assert set(layered({"a": ["b"], "b": ["a"], "c": ["nobody"]})) == {"a", "b", "c"}


def test_each_step_shows_its_state_age_and_what_it_waits_for():
    jobs = {
        "f-a": {"metadata": {"creationTimestamp": "2025-12-31T23:59:50Z"}, "status": {"state": {"phase": "Completed"}}},
        "f-b": {"metadata": {"creationTimestamp": "2025-12-31T23:59:55Z"}, "status": {}},
    }

    drawn = [text for text, _ in lines(a_flow(a=[], b=["a"], c=["a", "b"]), jobs, NOW)]

    assert drawn[0] == "f  Running"
    assert drawn[1].split() == ["✔", "a", "Completed", "10s"]
    assert drawn[2].split() == ["…", "└─", "b", "Pending", "5s", "after", "a"]
    assert drawn[3].split() == ["·", "└─", "c", "waiting", "after", "a,", "b"]
