"""CronJob, JobTemplate and JobFlow with the job specs in them as written: what makes Jobs from them reads these.

A spec that is only passed on stays JSON, so that no field in it is lost, and an absent field can be told
from what is nothing. The typed views are batch.CronJob, flow.JobTemplate and flow.JobFlow.
"""

from __future__ import annotations

from volcano.api.batch import CronJobStatus
from volcano.api.flow import FlowDependsOn, JobFlowStatus
from volcano.api.meta import JSON, Model, Resource


class CronJobSourceSpec(Model, frozen=True):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = ""
    suspend: bool | None = None
    job_template: JSON = {}
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJobSource(Resource, frozen=True):
    spec: CronJobSourceSpec = CronJobSourceSpec()
    status: CronJobStatus = CronJobStatus()


class BatchCronJobSource(Resource, frozen=True):
    """batch/v1 CronJob, Kubernetes' own: it makes Kubernetes' own Jobs."""

    spec: CronJobSourceSpec = CronJobSourceSpec()
    status: CronJobStatus = CronJobStatus()


class JobTemplateSource(Resource, frozen=True):
    spec: JSON = {}


class FlowPatchSource(Model, frozen=True):
    job_spec: JSON | None = None


class FlowSource(Model, frozen=True):
    name: str = ""
    depends_on: FlowDependsOn | None = None
    patch: FlowPatchSource | None = None


class JobFlowSourceSpec(Model, frozen=True):
    flows: list[FlowSource] = []
    job_retain_policy: str = ""


class JobFlowSource(Resource, frozen=True):
    spec: JobFlowSourceSpec = JobFlowSourceSpec()
    status: JobFlowStatus = JobFlowStatus()
