"""Who submitted a job is written at its creation, by admission: what users put there themselves is replaced.

The controllers make the Jobs of CronJobs and JobFlows, and write the submitter of the owner; theirs is kept.
"""

from __future__ import annotations

from typing import Final

from volcano.admission.review import FieldChange, Reader, ReviewAnswer, Settings, change, read, section
from volcano.api.flow import JobFlow
from volcano.api.jobs.estimates import SUBMITTER_KEY
from volcano.api.meta import JSON
from volcano.machinery.admission import CREATE, Attributes

PATH: Final = f"metadata.annotations[{SUBMITTER_KEY}]"
MAX_NAME_CHARACTERS: Final = 512
UNCHANGEABLE: Final = f"{PATH}: Forbidden: is written when the object is created, and cannot be changed"


def submitter_changes(attributes: Attributes, settings: Settings) -> tuple[FieldChange, ...]:
    """The annotation with the user who creates the object."""
    user = attributes.user.name[:MAX_NAME_CHARACTERS]
    if attributes.operation != CREATE or not user or user in settings.controller_users:
        return ()
    given = section(attributes.object, "metadata", "annotations")
    if given.get(SUBMITTER_KEY) == user:
        return ()
    return (change("metadata", "annotations", value={**given, SUBMITTER_KEY: user}),)


def submitter_problem(attributes: Attributes) -> str:
    """Why an update is refused: it names another submitter. Leaving the annotation out is what clients may do."""
    given, before = _stated(attributes.object), _stated(attributes.old)
    return UNCHANGEABLE if given and given != before else ""


def mutate_jobflow(attributes: Attributes, _reader: Reader, settings: Settings) -> ReviewAnswer:
    """/jobflows/mutate: who submitted the flow, which its Jobs take over."""
    flow = read(JobFlow, attributes.object)
    if isinstance(flow, ReviewAnswer):
        return flow
    return ReviewAnswer(submitter_changes(attributes, settings))


def _stated(value: JSON | None) -> str:
    return str(section(value, "metadata", "annotations").get(SUBMITTER_KEY) or "")
