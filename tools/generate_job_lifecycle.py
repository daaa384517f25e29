"""Draw docs/reference/job-lifecycle.md from the table of states and the table of job plugins.

python tools/generate_job_lifecycle.py           write the page
python tools/generate_job_lifecycle.py --check   fail if the page is not up to date
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from generated_page import write_or_check

from volcano.api.batch import Action, Phase
from volcano.api.jobs.plugins import JOB_PLUGINS
from volcano.controllers.job.states import STATES, Effect, Kill

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "job-lifecycle.md"
INTRO = """\
# The life of a Job

Generated from `volcano/controllers/job/states.py` and `volcano/api/jobs/plugins.py` by
`tools/generate_job_lifecycle.py`.
"""
NOTES = """\
Counts are of pods: `pending`, `running`, `succeeded`, `failed`, `terminating`. *Too few succeeded* means fewer than
`minSuccess`, fewer than `minAvailable`, or, where `minAvailable` covers all tasks, fewer in some task than the task's
own `minAvailable`.

- Every kill of the whole job raises `status.version`. Pods carry the version they were made under; what happens to
  pods of an older version is no event any more.
- On the last retry (`retryCount ≥ maxRetry − 1`) finished pods are kept whatever the table says.
- Pods that are ended are marked with `volcano.sh/controller-out-of-sync` first, so that their end is no event.
- A Job says why it waits: `status.state.reason` and `.message` repeat what the scheduler wrote on the PodGroup. After
  an action they say which action it was and what set it off.
- Counters are written at most once a second and words of the same reason at most once a minute; a change of phase or
  of reason is written at once.

## What the controller remembers

Nothing is remembered outside the objects. `status.controlledResources` holds, besides Volcano's own entries:

| Entry | Meaning |
|---|---|
| `plugin-<name>` | objects of the plugin may exist |
| `volume-pvc-<claim>` | a claim that the job uses |
| `restart` | while Restarting, what is restarted: `job` (all pods), `unfinished` (all but finished ones), or targets \
such as `task/worker`, `pod/j-worker-0`, `partition/worker/1` |
| `command` | the Command that was accepted and is being carried out, or the last one that was |
| `evicted-<pod>` | when a pod was lost whose policy waits for its timeout |
"""


def page() -> str:
    return "\n".join([INTRO, *_diagram(), "", *_table(), "", NOTES, *_plugins()]) + "\n"


def _diagram() -> Iterator[str]:
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {Phase.PENDING}"
    for phase, state in STATES.items():
        for then, actions in _grouped(state.actions).items():
            yield f"    {phase} --> {then}: {', '.join(actions)}"
        for rule in state.settles:
            yield f"    {phase} --> {rule.then}: {rule.words}"
        if not state.settles and not state.actions:
            yield f"    {phase} --> [*]"
    yield "```"


def _grouped(actions: object) -> dict[Phase, list[str]]:
    grouped: dict[Phase, list[str]] = {}
    for action, effect in dict(actions).items():  # type: ignore[call-overload]
        if effect.then is not None:
            grouped.setdefault(effect.then, []).append(str(action))
    return grouped


def _table() -> Iterator[str]:
    yield "## What each phase does"
    yield ""
    yield "An action that is not listed changes nothing: the phase goes on with its own work."
    yield ""
    yield "| Phase | By itself | Action | Effect |"
    yield "|---|---|---|---|"
    for phase, state in STATES.items():
        rows = [(str(action), _effect(effect)) for action, effect in state.actions.items()]
        rows += [(f"*{rule.words}*", f"→ {rule.then}") for rule in state.settles]
        for number, (action, effect) in enumerate(rows or [("", "")]):
            first = (f"**{phase}**", str(state.work)) if number == 0 else ("", "")
            yield f"| {first[0]} | {first[1]} | {action} | {effect} |"


def _effect(effect: Effect) -> str:
    what = f"end all pods but {effect.keep}" if isinstance(effect, Kill) else "end the target's pods"
    what = what.replace(" but nothing", "")
    then = f" → {effect.then}" if effect.then is not None else ", stay"
    return what + then + (", one retry" if effect.counts_as_retry else "")


def _plugins() -> Iterator[str]:
    yield "## Job plugins"
    yield ""
    yield "| Plugin | What for | Argument | Default | Meaning |"
    yield "|---|---|---|---|---|"
    for plugin in JOB_PLUGINS.values():
        pulls = f" (adds {', '.join(plugin.pulls_in)})" if plugin.pulls_in else ""
        for number, argument in enumerate(plugin.arguments or (None,)):
            first = (f"`{plugin.name}`{pulls}", plugin.summary) if number == 0 else ("", "")
            if argument is None:
                yield f"| {first[0]} | {first[1]} | | | |"
                continue
            default = str(argument.default).lower() if isinstance(argument.default, bool) else argument.default
            shown = f"`{default}`" if default != "" else "none"
            yield f"| {first[0]} | {first[1]} | `--{argument.name}` | {shown} | {argument.meaning} |"


if __name__ == "__main__":
    assert set(Action) >= {action for state in STATES.values() for action in state.actions}
    sys.exit(write_or_check(PAGE, page()))
