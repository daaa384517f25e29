"""`vcctl scheduler status`: the configuration in force, or why the newest was refused; and what the scheduler sees."""

from __future__ import annotations

import msgspec

from volcano.cli.command_line import Called, say
from volcano.cli.connection import connect
from volcano.cli.failures import Failed

PATH = "/api/v1/namespaces/volcano-system/services/volcano-scheduler:metrics/proxy/state"
REFUSED = 1


def status(called: Called) -> int:
    """1 while the newest configuration is refused."""
    try:
        state = msgspec.json.decode(connect(called).raw("GET", PATH))
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Failed(f"the scheduler's answer cannot be read: {error}") from error
    problem = state.get("configurationProblem") or ""
    say(f"scheduler      {'ready' if state.get('ready') else 'starting'}, {state.get('turns', 0)} cycles")
    say(f"configuration  {state.get('configurationSource', '')}")
    say(f"  actions      {', '.join(state.get('configurationActions') or ())}")
    say(f"  plugins      {', '.join(state.get('configurationPlugins') or ())}")
    for doubt in state.get("configurationDoubts") or ():
        say(f"  doubt        {doubt}")
    if problem:
        say(f"  REFUSED      the newest is not in force: {problem}")
    say(f"sees           {state.get('nodes', 0)} nodes, {state.get('jobs', 0)} jobs, {state.get('tasks', 0)} pods")
    for reason, count in (state.get("setAside") or {}).items():
        say(f"  set aside    {count}: {reason}")
    return REFUSED if problem else 0
