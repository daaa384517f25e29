"""The patch of a pod status: only what changed."""

from __future__ import annotations

from volcano.embedded.agent.status_writer import changes_between


def test_only_what_changed_is_written():
    sent = {
        "phase": "Pending",
        "podIP": "x",
        "conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "False"}],
    }
    now = {
        "phase": "Running",
        "podIP": "x",
        "conditions": [{"type": "A", "status": "True"}, {"type": "B", "status": "True"}],
    }

    assert changes_between(sent, now) == {"phase": "Running", "conditions": [{"type": "B", "status": "True"}]}
    assert changes_between(now, now) == {}
    assert changes_between(None, now) == now
