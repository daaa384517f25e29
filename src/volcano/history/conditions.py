"""Questions about jobs as SQL conditions: what both databases understand alike. Values are never part of the text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano.api.history_records import PHASES_OF_STATE
from volcano.history.columns import milliseconds
from volcano.history.database import SQLITE
from volcano.history.questions import JobQuestion, Namespaces

PHASE_THEN = (
    '(SELECT s."phase" FROM states s WHERE s."job_uid" = j."uid" AND s."at" <= :at ORDER BY s."at" DESC LIMIT 1)'
)


class Conditions:
    """Collects `AND` parts and their values."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.values: dict[str, Any] = {}

    def add(self, part: str, **values: Any) -> None:
        self.parts.append(part)
        self.values |= values

    def equal(self, column: str, name: str, value: str) -> None:
        if value:
            self.add(f"{column} = :{name}", **{name: value})

    def among(self, column: str, name: str, wanted: Iterable[str]) -> None:
        named = {f"{name}_{number}": value for number, value in enumerate(sorted(wanted))}
        if not named:
            self.add("1 = 0")
            return
        self.add(f"{column} IN ({', '.join(f':{key}' for key in named)})", **named)

    def see(self, column: str, visible: Namespaces) -> None:
        if visible is not None:
            self.among(column, "visible", visible)

    @property
    def text(self) -> str:
        return " AND ".join(self.parts) or "1 = 1"


def job_conditions(question: JobQuestion, dialect: str) -> Conditions:
    """On `jobs j`."""
    found = Conditions()
    found.see('j."namespace"', question.visible)
    for column in ("uid", "namespace", "name", "user", "queue", "kind"):
        found.equal(f'j."{column}"', column, getattr(question, column))
    if question.text:
        escaped = question.text.lower().replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
        found.add("LOWER(j.\"name\") LIKE :text ESCAPE '\\'", text=f"%{escaped}%")
    if question.node:
        found.add('EXISTS (SELECT 1 FROM pods p WHERE p."job_uid" = j."uid" AND p."node" = :node)', node=question.node)
    if question.label:
        _add_label(found, question.label, dialect)
    phases = {*question.phases, *(phase for state in question.states for phase in PHASES_OF_STATE.get(state, ()))}
    if phases or question.states:
        found.among(PHASE_THEN if question.at else 'j."phase"', "phase", phases)
    _add_times(found, question)
    return found


def label_value(key_name: str, dialect: str) -> str:
    """A label of the job, NULL when it has none of that key."""
    if dialect == SQLITE:
        return f'(SELECT l.value FROM json_each(j."labels") l WHERE l.key = :{key_name})'
    return f'(j."labels"::jsonb ->> CAST(:{key_name} AS TEXT))'


def _add_label(found: Conditions, label: str, dialect: str) -> None:
    key, equals, value = label.partition("=")
    column = label_value("label_key", dialect)
    if equals:
        found.add(f"{column} = :label_text", label_key=key, label_text=value)
    else:
        found.add(f"{column} IS NOT NULL", label_key=key)


def _add_times(found: Conditions, question: JobQuestion) -> None:
    if question.at is not None:
        found.add(
            'j."created" <= :at AND (j."gone" IS NULL OR j."gone" > :at)',
            at=milliseconds(question.at),
        )
    if question.since is not None:
        found.add('(j."ended" IS NULL OR j."ended" >= :since)', since=milliseconds(question.since))
    if question.until is not None:
        found.add('j."created" < :until', until=milliseconds(question.until))
    if question.ended_since is not None:
        found.add('j."ended" >= :ended_since', ended_since=milliseconds(question.ended_since))
    if question.ended_until is not None:
        found.add('j."ended" < :ended_until', ended_until=milliseconds(question.ended_until))
