"""flow.volcano.sh/v1alpha1: JobTemplate and JobFlow."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from volcano.api.batch import JobSpec, TaskState
from volcano.api.meta import Model, Resource
from volcano.api.schema_annotations import Count, Duration, Name253, wire

CREATED_BY_FLOW: Final = "volcano.sh/createdByJobFlow"
"""On a Job that a JobFlow made: the flow, as an annotation, and as a label where its name is short enough."""
Port = Annotated[int, wire(minimum=0, maximum=65535)]


class JobTemplateStatus(Model, frozen=True):
    job_depends_on_list: list[str] = []


class JobTemplate(Resource, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobTemplateStatus = JobTemplateStatus()


class HttpHeader(Model, frozen=True):
    name: Annotated[str, wire(required=True)] = ""
    value: Annotated[str, wire(required=True)] = ""


class HttpGet(Model, frozen=True):
    task_name: Name253 = ""
    path: str = ""
    port: Port = 0
    http_header: HttpHeader | None = None


class TcpSocket(Model, frozen=True):
    task_name: Name253 = ""
    port: Annotated[Port, wire(required=True)] = 0


class TaskStatusProbe(Model, frozen=True):
    task_name: Name253 = ""
    phase: Annotated[str, wire(maxLength=63)] = ""


class FlowProbe(Model, frozen=True):
    http_get_list: list[HttpGet] = []
    tcp_socket_list: list[TcpSocket] = []
    task_status_list: list[TaskStatusProbe] = []


class FlowDependsOn(Model, frozen=True):
    targets: list[str] = []
    probe: FlowProbe | None = None


class FlowPatch(Model, frozen=True):
    job_spec: JobSpec | None = None


class FlowEntry(Model, frozen=True):
    name: Annotated[str, wire(minLength=1, required=True)] = ""
    depends_on: FlowDependsOn | None = None
    patch: FlowPatch | None = None


class JobFlowSpec(Model, frozen=True):
    flows: list[FlowEntry] = []
    job_retain_policy: Annotated[str, wire(enum=("retain", "delete"))] = ""


class RunningHistory(Model, frozen=True):
    start_timestamp: datetime | None = None
    end_timestamp: datetime | None = None
    state: str = ""


class FlowJobStatus(Model, frozen=True):
    name: str = ""
    state: str = ""
    start_timestamp: datetime | None = None
    end_timestamp: datetime | None = None
    restart_count: Count = 0
    running_histories: list[RunningHistory] = []


class FlowCondition(Model, frozen=True):
    phase: str = ""
    create_time: datetime | None = None
    running_duration: Duration | None = None
    task_status_count: dict[str, TaskState] = {}


class JobFlowState(Model, frozen=True):
    phase: Annotated[str, wire(enum=("Succeed", "Terminating", "Failed", "Running", "Pending"))] = ""


class JobFlowStatus(Model, frozen=True):
    pending_jobs: list[str] = []
    running_jobs: list[str] = []
    failed_jobs: list[str] = []
    completed_jobs: list[str] = []
    terminated_jobs: list[str] = []
    un_know_jobs: list[str] = []
    job_status_list: list[FlowJobStatus] = []
    conditions: dict[str, FlowCondition] = {}
    state: JobFlowState = JobFlowState()


class JobFlow(Resource, frozen=True):
    spec: JobFlowSpec = JobFlowSpec()
    status: JobFlowStatus = JobFlowStatus()
