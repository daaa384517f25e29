"""Sends generated requests, operation by operation, and checks every answer against the document that describes it."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.core.failures import Failure, FailureGroup

from tests.fuzz.api.steering import Steering
from tests.fuzz.api.system import AttackedSystem

REQUEST_SECONDS = 20.0
"""A request that takes longer hangs."""
CHECK_NAMES = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance",
)  # fmt: skip
CHANGED_GROUP = "fuzz.example.com/v1"
"""Its definition is one of the objects that are changed: what was read at the start is soon not true any more."""
NEGATIVE_SHARE = 0.3
MAX_SHOWN_CHARACTERS = 1500


@dataclass
class Tally:
    """What was sent, what was answered and what was wrong with it."""

    answers: Counter[int] = field(default_factory=Counter)
    failures: dict[str, str] = field(default_factory=dict)
    """By operation and kind of failure: the first request that showed it."""
    not_generated: Counter[str] = field(default_factory=Counter)

    @property
    def sent(self) -> int:
        return self.answers.total()


class Attack:
    def __init__(self, system: AttackedSystem, *, base_seed: int) -> None:
        load_all_checks()
        self._system, self._seed = system, base_seed
        self._steering = Steering()
        self._checks = [CHECKS.get_one(name) for name in CHECK_NAMES]
        self._headers = {"authorization": f"Bearer {system.token}"}
        self.tally = Tally()

    def operations(self, only: str = "") -> list[tuple[str, APIOperation]]:
        """Every operation of every document, with the base URL of its paths."""
        found = []
        for name, (base, document) in self._system.documents().items():
            if (not only or only in name) and not name.endswith(CHANGED_GROUP):
                schema = schemathesis.openapi.from_dict(only_known_fields(document))
                schema.config.generation.update(allow_x00=True)
                found += [(base, result.ok()) for result in schema.get_all_operations()]
        return found

    def run(self, operations: Iterable[tuple[str, APIOperation]], examples: int, end: float, number: int = 0) -> None:
        """Some requests of each operation; `number` is that of the round, so that each round sends others."""
        order = list(operations)
        random.Random(f"{self._seed} {number}").shuffle(order)
        for base, operation in order:
            if time.monotonic() > end:
                return
            chance = random.Random(f"{self._seed} {number} {operation.label}")
            mode = GenerationMode.NEGATIVE if chance.random() < NEGATIVE_SHARE else GenerationMode.POSITIVE
            if mode is GenerationMode.NEGATIVE and operation.body:
                mode = GenerationMode.POSITIVE  # bodies of our size take seconds to negate; steering makes wrong ones
            self._attempt(base, operation, mode, examples, chance.randrange(2**32), end)

    def _attempt(self, base: str, operation: APIOperation, mode: GenerationMode, examples: int, value: int, end: float) -> None:  # fmt: skip
        @settings(
            max_examples=examples, deadline=None, database=None, phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @seed(value)
        @given(operation.as_strategy(generation_mode=mode), st.randoms(use_true_random=False))
        def send(case: Case, chance: random.Random) -> None:
            if time.monotonic() < end:
                self._send(base, case, chance)

        try:
            send()
        except HypothesisException as error:
            self.tally.not_generated[f"{operation.label}: {type(error).__name__}"] += 1

    def _send(self, base: str, case: Case, chance: random.Random) -> None:
        self._steering.lead(case, chance)
        asked = time.monotonic()
        try:
            response = case.call(
                base_url=base, session=self._system.session, headers=self._headers,
                verify=self._system.session.verify, timeout=REQUEST_SECONDS, allow_redirects=False,
            )  # fmt: skip
        except requests.exceptions.RequestException as error:
            self._fail(case, type(error).__name__, f"after {time.monotonic() - asked:.1f} s: {error}")
            return
        except (ValueError, UnicodeError) as error:
            self.tally.not_generated[f"{case.operation.label}: {error}"] += 1  # HTTP cannot carry this
            return
        self.tally.answers[response.status_code] += 1
        for check in self._checks_of(case, response):
            try:
                case.validate_response(response, checks=[check])
            except (Failure, FailureGroup) as error:
                self._fail(case, check.__name__, f"{response.status_code} {response.content[:400]!r}\n{error}")
        self._after(base, case, response)

    def _checks_of(self, case: Case, response: Any) -> list[Callable[..., Any]]:
        is_stream = "stream=watch" in (response.headers.get("content-type") or [""])[0] or "watch" in (case.query or {})
        return self._checks[:1] if is_stream else self._checks

    def _after(self, base: str, case: Case, response: Any) -> None:
        try:
            answer = response.json()
        except ValueError:
            return
        for path in self._steering.note(case, response.status_code, answer):
            self._system.session.delete(f"{base}{path}", headers=self._headers, timeout=REQUEST_SECONDS)

    def _fail(self, case: Case, kind: str, text: str) -> None:
        key = f"{case.operation.label} {kind}"
        if key not in self.tally.failures:
            command = case.as_curl_command()[:MAX_SHOWN_CHARACTERS]
            self.tally.failures[key] = f"{text[:MAX_SHOWN_CHARACTERS]}\n  {command}"


def only_known_fields(document: Any, name: str = "") -> Any:
    """The document with objects closed: generated bodies have the fields that it names, and answers must have no others.

    What Kubernetes' own types call required is what they always write, zeros and empty texts included; this server
    leaves those out where nobody sent them, so they are not required here.
    """
    if isinstance(document, list):
        return [only_known_fields(each) for each in document]
    if not isinstance(document, dict):
        return document
    found = {name: only_known_fields(each, name) for name, each in document.items()}
    if name.startswith("io.k8s."):
        found.pop("required", None)
    is_schema = document.get("type") == "object" and isinstance(document.get("properties"), dict)
    if is_schema and "additionalProperties" not in found and not found.get("x-kubernetes-preserve-unknown-fields"):
        found["additionalProperties"] = False
    return found
