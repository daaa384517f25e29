"""Leads a generated request to something: names that exist, bodies that are a good object with generated places.

Requests as schemathesis makes them from a schema alone mostly end at the first name; they are sent too.
"""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from schemathesis import Case

from tests.fuzz.api.system import NAMESPACE
from tests.fuzz.seed_objects import FURTHER_SEEDS, SEEDS

MAX_KEPT_OBJECTS = 8
"""Of one kind; the oldest is deleted."""
UNCHANGED_SHARE = 0.15
SEED_BODIES = {
    path.replace("/namespaces/default/", "/namespaces/{namespace}/"): body
    for path, body in (SEEDS | FURTHER_SEEDS).items()
}
REACHES_EVERYTHING = ("namespaces", "nodes", "customresourcedefinitions", "apiservices", "queues", "priorityclasses")
HAZARDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations", "apiservices")
"""Kinds whose objects make other requests fail, as they should: deleted as soon as they are made."""


class Steering:
    """Knows which objects the attack has made."""

    def __init__(self) -> None:
        self._made: dict[str, list[str]] = defaultdict(list)
        self._count = 0

    def lead(self, case: Case, chance: random.Random) -> None:
        """Change the case in place."""
        if chance.random() >= UNCHANGED_SHARE:
            self._lead(case, chance)
        self._bound(case)

    def _lead(self, case: Case, chance: random.Random) -> None:
        if "namespace" in (case.path_parameters or {}):
            case.path_parameters["namespace"] = NAMESPACE
        if "name" in (case.path_parameters or {}) and (names := self._names(case)) and chance.random() < 0.9:
            case.path_parameters["name"] = chance.choice(names)
        if case.query:
            for name in (
                "dryRun",
                "fieldValidation",
                "fieldManager",
                "continue",
                "resourceVersion",
                "resourceVersionMatch",
            ):
                if chance.random() < 0.8:
                    case.query.pop(name, None)
        if isinstance(case.body, dict) and case.method in ("POST", "PUT", "PATCH"):
            self._body(case, chance)

    def note(self, case: Case, status: int, answer: Any) -> Iterator[str]:
        """Remember what was made; yields the paths of objects that are to be deleted now."""
        if case.method != "POST" or status != 201 or not isinstance(answer, dict):
            return
        name = str((answer.get("metadata") or {}).get("name", ""))
        kept = self._made[case.path]
        kept.append(name)
        place = case.path.replace("{namespace}", str((case.path_parameters or {}).get("namespace", "")))
        limit = 0 if place.rsplit("/", 1)[1] in HAZARDS else MAX_KEPT_OBJECTS
        while len(kept) > limit:
            yield f"{place}/{kept.pop(0)}"

    def _bound(self, case: Case) -> None:
        """A watch ends by itself, and a collection of what the system itself needs is not deleted."""
        query = dict(case.query or {})
        if "watch" in query or case.method == "GET":
            query["timeoutSeconds"] = "1"
        if case.method == "DELETE" and "{namespace}" not in case.path:
            if "{name}" not in case.path:
                query["dryRun"] = "All"
            elif any(f"/{plural}/" in case.path for plural in REACHES_EVERYTHING):
                case.path_parameters["name"] = f"fuzz-{case.path_parameters['name']}"
        case.query = query

    def _names(self, case: Case) -> list[str]:
        collection = case.path.partition("/{name}")[0]
        seed = SEED_BODIES.get(collection)
        return [*self._made[collection], *([seed["metadata"]["name"]] if seed and "metadata" in seed else [])]

    def _body(self, case: Case, chance: random.Random) -> None:
        collection = case.path.partition("/{name}")[0]
        body = case.body
        seed = SEED_BODIES.get(case.path if case.path.endswith(("/binding", "/eviction", "/token")) else collection)
        if seed is not None and chance.random() < 0.9:
            body = merged(seed, body, chance, chance.choice((0.02, 0.05, 0.3)))
        metadata = body.get("metadata")
        if not isinstance(metadata, dict):
            metadata = body["metadata"] = {}
        for name in ("apiVersion", "kind"):
            if seed is None or name not in seed:
                body.pop(name, None)
        for name in (
            "namespace",
            "resourceVersion",
            "uid",
            "generateName",
            "deletionTimestamp",
            "managedFields",
            "finalizers",
        ):
            if chance.random() < 0.95:
                metadata.pop(name, None)
        if case.method == "POST":
            self._count += 1
            metadata["name"] = (
                f"fuzz-{self._count}" if "customresourcedefinitions" not in case.path else metadata.get("name")
            )
        elif "name" in (case.path_parameters or {}):
            metadata["name"] = case.path_parameters["name"]
        case.body = body


def merged(good: Any, generated: Any, chance: random.Random, share: float) -> Any:
    """A good object with this share of the places of a generated one."""
    if not isinstance(good, dict) or not isinstance(generated, dict):
        return copy.deepcopy(generated if chance.random() < share else good)
    found = {name: copy.deepcopy(value) for name, value in good.items()}
    for name, value in generated.items():
        if name in good:
            found[name] = merged(good[name], value, chance, share)
        elif chance.random() < share:
            found[name] = value
    return found
