"""jobtemplate: each JobTemplate lists the Jobs that were made from it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import ClassVar, Final

import msgspec

from volcano.api.batch import Job
from volcano.api.flow import JobTemplate
from volcano.api.indexes import Indexes
from volcano.api.meta import Key, Resource
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Plan, patch_status
from volcano.machinery.world import Change, World

CREATED_BY_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"


def label_value(namespace: str, name: str) -> str:
    return f"{namespace}.{name}"


def _template_of(job: Job) -> str:
    return job.annotations.get(CREATED_BY_TEMPLATE) or job.labels.get(CREATED_BY_TEMPLATE, "")


class JobTemplateController(Controller):
    """Keeps `status.jobDependsOnList`."""

    name: ClassVar = "jobtemplate"
    indexes: ClassVar[Indexes] = {
        Job: {"template": lambda job: [value] if (value := _template_of(job)) else []},
    }

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {JobTemplate: _templates, Job: _jobs}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        template = world.get(JobTemplate, key)
        if template is None or template.is_deleting:
            return NOTHING
        jobs = world.where(Job, "template", label_value(template.namespace, template.name))
        names = [job.name for job in jobs if job.namespace == template.namespace]
        if not names or names == template.status.job_depends_on_list:
            return NOTHING
        return (patch_status(template, msgspec.structs.replace(template.status, job_depends_on_list=names)),)


def _templates(change: Change[JobTemplate]) -> Iterable[Wake]:
    if change.old is None and change.new is not None:
        yield Wake(change.new.key)


def _jobs(change: Change[Job]) -> Iterable[Wake]:
    """By coming and going. The value begins with the namespace, so a name with dots in it is no riddle."""
    if change.old is not None and change.new is not None:
        return
    job = change.object
    namespace, _, name = _template_of(job).partition(f"{job.namespace}.")
    if not namespace and name:
        yield Wake(Key(job.namespace, name))
