"""The table of webhooks, and the chain: mutate all, then validate all, refusals as values.

Served one by one over HTTPS (app.webhook) or all at once in the embedded server (app.admission_plug), where the schema
is checked between `mutate` and `validate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, TypeAlias

import msgspec

from volcano.admission.cronjobs import validate_cronjob
from volcano.admission.extended_limits import mutate_cronjob, mutate_jobtemplate
from volcano.admission.hypernodes import validate_hypernode
from volcano.admission.job_defaults import mutate_job
from volcano.admission.jobflows import validate_jobflow
from volcano.admission.jobs import validate_job
from volcano.admission.podgroups import mutate_podgroup, validate_podgroup
from volcano.admission.pods import mutate_pod, validate_pod
from volcano.admission.queues import mutate_queue, validate_queue
from volcano.admission.reservations import validate_reservation
from volcano.admission.review import Notice, Reader, ReviewAnswer, Settings, deny
from volcano.admission.submitters import kept_submitter, mutate_jobflow
from volcano.api import batch, core, flow, reservation, scheduling, topology
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType, resource_type
from volcano.machinery.admission import CREATE, DELETE, UPDATE, Attributes

Rule: TypeAlias = Callable[[Attributes, Reader, Settings], ReviewAnswer]


class Webhook(msgspec.Struct, frozen=True):
    """One URL path: the resource and operations it is about, and its rule."""

    path: str
    kind: Literal["mutating", "validating"]
    resource: ResourceType
    operations: tuple[str, ...]
    name: str
    rule: Rule
    in_chart: bool = False
    by_default: bool = False

    def concerns(self, attributes: Attributes) -> bool:
        row = self.resource
        wanted = attributes.resource
        return (
            not attributes.subresource
            and attributes.operation in self.operations
            and (row.group, row.plural) == (wanted.group, wanted.plural)
        )


def _mutating(path: str, reader: type, rule: Rule, name: str, **where: bool) -> Webhook:
    return Webhook(path, "mutating", resource_type(reader), (CREATE,), name, rule, **where)


def _validating(path: str, reader: type, rule: Rule, name: str, *operations: str, **where: bool) -> Webhook:
    return Webhook(path, "validating", resource_type(reader), operations or (CREATE, UPDATE), name, rule, **where)


MAX_SORTS_OF_WRITES: Final = 4096
"""Resource, operation and subresource; definitions of custom resources come and go."""
PODGROUPS_VALIDATE: Final = "/podgroups/validate"
RESERVATIONS_VALIDATE: Final = "/reservations/validate"
WEBHOOKS: Final[tuple[Webhook, ...]] = (
    _mutating("/jobs/mutate", batch.Job, mutate_job, "mutatejob.volcano.sh", in_chart=True, by_default=True),
    _validating("/jobs/validate", batch.Job, validate_job, "validatejob.volcano.sh", in_chart=True, by_default=True),
    _mutating("/cronjobs/mutate", batch.CronJob, mutate_cronjob, "mutatecronjob.volcano.sh", in_chart=True),
    _validating("/cronjobs/validate", batch.CronJob, validate_cronjob, "validatecronjob.volcano.sh", in_chart=True),
    _mutating("/podgroups/mutate", scheduling.PodGroup, mutate_podgroup, "mutatepodgroup.volcano.sh", by_default=True),
    _validating(
        PODGROUPS_VALIDATE, scheduling.PodGroup, validate_podgroup, "validatepodgroup.volcano.sh", CREATE,
        in_chart=True,
    ),
    _mutating(
        "/queues/mutate", scheduling.Queue, mutate_queue, "mutatequeue.volcano.sh", in_chart=True, by_default=True
    ),
    _validating(
        "/queues/validate", scheduling.Queue, validate_queue, "validatequeue.volcano.sh", CREATE, UPDATE, DELETE,
        in_chart=True, by_default=True,
    ),
    _mutating("/pods/mutate", core.Pod, mutate_pod, "mutatepod.volcano.sh", by_default=True),
    _validating("/pods/validate", core.Pod, validate_pod, "validatepod.volcano.sh", CREATE, by_default=True),
    _mutating(
        "/jobtemplates/mutate", flow.JobTemplate, mutate_jobtemplate, "mutatejobtemplate.volcano.sh", in_chart=True
    ),
    _mutating("/jobflows/mutate", flow.JobFlow, mutate_jobflow, "mutatejobflow.volcano.sh", in_chart=True),
    _validating("/jobflows/validate", flow.JobFlow, validate_jobflow, "validatejob.volcano.sh"),
    _validating(
        "/hypernodes/validate", topology.HyperNode, validate_hypernode, "validatehypernodes.volcano.sh", in_chart=True
    ),
    _validating(
        RESERVATIONS_VALIDATE, reservation.Reservation, validate_reservation, "validatereservation.volcano.sh",
        in_chart=True,
    ),
)  # fmt: skip
BY_PATH: Final = {webhook.path: webhook for webhook in WEBHOOKS}
ALL_PATHS: Final = tuple(BY_PATH)
DEFAULT_PATHS: Final = tuple(webhook.path for webhook in WEBHOOKS if webhook.by_default)


class ReviewOutcome(msgspec.Struct, frozen=True):
    """The object to go on with, or who refused it and why."""

    object: JSON | None
    denial: str = ""
    denied_by: str = ""
    warnings: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()

    @property
    def is_allowed(self) -> bool:
        return not self.denied_by

    @property
    def message(self) -> str:
        """The refusal as the API server words one of a webhook."""
        return f'admission webhook "{self.denied_by}" denied the request: {self.denial}' if self.denied_by else ""


def _on_updates(webhook: Webhook) -> Webhook:
    if webhook.path != PODGROUPS_VALIDATE:
        return webhook
    return msgspec.structs.replace(webhook, operations=(CREATE, UPDATE))


class AdmissionChain:
    """All enabled webhooks, one after the other, as pure functions of the write and what can be read."""

    def __init__(
        self, settings: Settings | None = None, *, enabled: Iterable[str] = ALL_PATHS, in_process: bool = False
    ) -> None:
        """`in_process`: in the API server itself, where reviewing every update of a PodGroup costs no request."""
        self.settings = settings or Settings()
        self._in_process = in_process
        self._webhooks = tuple(_on_updates(BY_PATH[path]) if in_process else BY_PATH[path] for path in enabled)
        self._concerned_by: dict[tuple[str, ResourceType, str, str], tuple[Webhook, ...]] = {}

    def review(self, attributes: Attributes, reader: Reader) -> ReviewOutcome:
        """Mutate, then validate the result."""
        mutated = self.mutate(attributes, reader)
        if not mutated.is_allowed:
            return mutated
        changed = msgspec.structs.replace(attributes, object=mutated.object)
        validated = self.validate(changed, reader)
        return msgspec.structs.replace(validated, warnings=(*mutated.warnings, *validated.warnings))

    def mutate(self, attributes: Attributes, reader: Reader) -> ReviewOutcome:
        """The object after all mutating webhooks."""
        warnings: list[str] = []
        if self._in_process:
            attributes = _changed(attributes, kept_submitter(attributes))
        for webhook in self._concerned(attributes, "mutating"):
            answer = webhook.rule(attributes, reader, self.settings)
            warnings += answer.warnings
            if answer.denial:
                return _refused(attributes, webhook, answer, warnings)
            attributes = _changed(attributes, answer)
        return ReviewOutcome(attributes.object, warnings=tuple(warnings))

    def validate(self, attributes: Attributes, reader: Reader) -> ReviewOutcome:
        """The first refusal, if any; the object stays as it is."""
        warnings: list[str] = []
        for webhook in self._concerned(attributes, "validating"):
            answer = webhook.rule(attributes, reader, self.settings)
            warnings += answer.warnings
            if answer.denial:
                return _refused(attributes, webhook, answer, warnings)
        return ReviewOutcome(attributes.object, warnings=tuple(warnings))

    def answer(self, webhook: Webhook, attributes: Attributes, reader: Reader) -> ReviewAnswer:
        """The answer of one webhook to one review, as served over HTTPS."""
        if attributes.operation not in webhook.operations:
            return deny(f"expect operation to be {' or '.join(webhook.operations)}, got {attributes.operation!r}")
        if not webhook.concerns(attributes):
            return deny(f"expect resource to be {webhook.resource.qualified}, got {attributes.resource.qualified}")
        return webhook.rule(attributes, reader, self.settings)

    def _concerned(self, attributes: Attributes, kind: str) -> tuple[Webhook, ...]:
        """Looked up once for all writes of the same sort; most concern no webhook."""
        sort = (kind, attributes.resource, attributes.operation, attributes.subresource)
        found = self._concerned_by.get(sort)
        if found is None:
            if len(self._concerned_by) >= MAX_SORTS_OF_WRITES:
                self._concerned_by.clear()
            found = tuple(each for each in self._webhooks if each.kind == kind and each.concerns(attributes))
            self._concerned_by[sort] = found
        return found


def _changed(attributes: Attributes, answer: ReviewAnswer) -> Attributes:
    after = answer.changed(attributes.object)
    return attributes if after is attributes.object else msgspec.structs.replace(attributes, object=after)


def _refused(attributes: Attributes, webhook: Webhook, answer: ReviewAnswer, warnings: list[str]) -> ReviewOutcome:
    return ReviewOutcome(
        attributes.object,
        denial=answer.denial,
        denied_by=webhook.name,
        warnings=tuple(warnings),
        notices=answer.notices,
    )
