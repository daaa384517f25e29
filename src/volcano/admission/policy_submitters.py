"""Who submitted an object, as CEL: written when it is created, and the same after every later write.

`variables.controllers` are the users as whom the controllers write; policies.py gives it to each policy.
"""

from __future__ import annotations

from typing import Final

from volcano.admission.policy_mutations import Mutation, put
from volcano.admission.policy_rules import Rule
from volcano.admission.submitters import FOREIGN, MAX_NAME_CHARACTERS, UNCHANGEABLE
from volcano.api.jobs.estimates import SUBMITTER_KEY

CONTROLLERS: Final = "controllers"
_BY_CONTROLLER: Final = f"request.userInfo.username in variables.{CONTROLLERS}"
_USER: Final = "request.userInfo.username"


def _stated(holder: str) -> str:
    """The annotation of the object or of what it was before; empty where there is none."""
    annotations = f"{holder}.metadata.annotations"
    return f"(has({annotations}) && '{SUBMITTER_KEY}' in {annotations} ? {annotations}['{SUBMITTER_KEY}'] : '')"


SUBMITTER_MUTATIONS: Final[tuple[Mutation, ...]] = (
    put(f"!({_BY_CONTROLLER}) && !has(object.metadata.annotations)", "/metadata/annotations", "{}"),
    put(f"!({_BY_CONTROLLER})", f"/metadata/annotations/{SUBMITTER_KEY.replace('/', '~1')}", _USER),
)
SUBMITTER_RULES: Final = (
    Rule(
        f"request.operation != 'CREATE' || {_BY_CONTROLLER} || {_stated('object')} in ['', {_USER}] "
        f"|| ({_USER}.size() > {MAX_NAME_CHARACTERS} "
        f"&& {_stated('object')} == {_USER}.substring(0, {MAX_NAME_CHARACTERS}))",
        FOREIGN,
    ),
    Rule(
        f"request.operation != 'UPDATE' || {_BY_CONTROLLER} || {_stated('object')} == {_stated('oldObject')}",
        UNCHANGEABLE,
    ),
)
