"""Who submitted a job is written at its creation, by admission: what users put there themselves is replaced.

The controllers make the Jobs of CronJobs and JobFlows, and write the submitter of the owner; theirs is kept. On a
cluster a policy (policy_submitters.py) holds for every write of these kinds, whichever webhooks are enabled.
"""

from __future__ import annotations

from typing import Final

from volcano.admission.review import ALLOWED, FieldChange, Reader, ReviewAnswer, Settings, change, read, section
from volcano.api import batch, scheduling
from volcano.api.flow import JobFlow
from volcano.api.jobs.estimates import SUBMITTER_KEY
from volcano.api.meta import JSON, Resource
from volcano.api.scheme import resource_type
from volcano.machinery.admission import CREATE, UPDATE, Attributes

PATH: Final = f"metadata.annotations[{SUBMITTER_KEY}]"
MAX_NAME_CHARACTERS: Final = 512
UNCHANGEABLE: Final = f"{PATH}: Forbidden: is written when the object is created, and cannot be changed or removed"
FOREIGN: Final = f"{PATH}: Forbidden: must be the user who creates the object, or be left out"
SUBMITTED: Final[tuple[type[Resource], ...]] = (batch.Job, batch.CronJob, JobFlow, scheduling.PodGroup)
"""The kinds that carry it."""
_SUBMITTED: Final = frozenset((resource_type(kind).group, resource_type(kind).plural) for kind in SUBMITTED)


def submitter_changes(attributes: Attributes, settings: Settings) -> tuple[FieldChange, ...]:
    """The annotation with the user who creates the object."""
    user = attributes.user.name[:MAX_NAME_CHARACTERS]
    if attributes.operation != CREATE or not user or user in settings.controller_users:
        return ()
    given = section(attributes.object, "metadata", "annotations")
    if given.get(SUBMITTER_KEY) == user:
        return ()
    return (change("metadata", "annotations", value={**given, SUBMITTER_KEY: user}),)


def kept_submitter(attributes: Attributes) -> ReviewAnswer:
    """An update that leaves the annotation out, as `kubectl replace` does, leaves it as it is."""
    row, before = attributes.resource, _stated(attributes.old)
    is_left_out = before and not _stated(attributes.object)
    if attributes.operation != UPDATE or attributes.subresource or not is_left_out:
        return ALLOWED
    if (row.group, row.plural) not in _SUBMITTED:
        return ALLOWED
    given = section(attributes.object, "metadata", "annotations")
    return ReviewAnswer((change("metadata", "annotations", value={**given, SUBMITTER_KEY: before}),))


def submitter_problem(attributes: Attributes, settings: Settings) -> str:
    """Why an update is refused: the submitter would be another afterwards, or none."""
    if attributes.operation != UPDATE or attributes.user.name in settings.controller_users:
        return ""
    return UNCHANGEABLE if _stated(attributes.object) != _stated(attributes.old) else ""


def mutate_jobflow(attributes: Attributes, _reader: Reader, settings: Settings) -> ReviewAnswer:
    """/jobflows/mutate: who submitted the flow, which its Jobs take over."""
    flow = read(JobFlow, attributes.object)
    if isinstance(flow, ReviewAnswer):
        return flow
    return ReviewAnswer(submitter_changes(attributes, settings))


def _stated(value: JSON | None) -> str:
    return str(section(value, "metadata", "annotations").get(SUBMITTER_KEY) or "")
