"""Submitting manifests to an API server, in order: what `volcano run` does before it watches."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from volcano.api.batch import STOPPED_PHASES, Job
from volcano.api.core import BatchJob
from volcano.api.decode import decode
from volcano.api.errors import AlreadyExists, NotFound
from volcano.api.manifests import ManifestError
from volcano.api.meta import JSON, Key
from volcano.api.scheme import ResourceType, find_resource_type
from volcano.cli.live.batch_jobs import BATCH_JOBS
from volcano.cli.live.job_follower import BATCH_CRON_JOBS, CRON_JOBS, FLOWS, JOBS, JobMaker
from volcano.cli.manifest_files import checked_documents
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Request

MAKERS = (FLOWS, CRON_JOBS, BATCH_CRON_JOBS)
WITHOUT_END = ("Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController", "Pod")
"""Kinds that run pods but that are not followed: most of them run until they are deleted."""


class SubmitError(ValueError):
    """Bad input, said with the object it concerns."""


def read_manifests(paths: list[str]) -> list[JSON]:
    """Every object of every file; nothing is sent unless all of them can be read."""
    documents: list[JSON] = []
    for path in paths:
        try:
            documents += checked_documents(Path(path).read_bytes(), source=path)
        except OSError as error:
            raise SubmitError(f"{path}: {error.strerror or error}") from error
        except ManifestError as error:
            raise SubmitError(str(error)) from error
    if not documents:
        raise SubmitError(f"there is no object in {', '.join(paths)}")
    return documents


class SubmittedObjects(NamedTuple):
    """What can be followed to an end: Jobs, and flows and cron jobs, which make Jobs; and what runs without end."""

    jobs: list[Key]
    batch_jobs: list[Key]
    makers: list[JobMaker]
    endless: list[str]
    """Kind and name."""

    @property
    def has_end(self) -> bool:
        return bool(self.jobs or self.batch_jobs or self.makers)


async def submit(
    client: Client, clock: Clock, documents: list[JSON], *, replace: bool, namespace: str
) -> SubmittedObjects:
    """Apply every object in order."""
    submitted = SubmittedObjects([], [], [], [])
    for document in documents:
        resource = await _resource(client, document)
        body = _placed(document, resource, namespace)
        key = Key(body["metadata"].get("namespace", ""), body["metadata"].get("name", ""))
        if resource is JOBS:
            submitted.jobs.append(await _submit_job(client, clock, body, key, replace=replace))
        elif resource is BATCH_JOBS:
            submitted.batch_jobs.append(await _submit_batch_job(client, clock, body, key, replace=replace))
        else:
            await _apply(client, resource, body, key)
            if resource in MAKERS:
                submitted.makers.append(JobMaker(resource, key))
            elif resource.kind in WITHOUT_END:
                submitted.endless.append(f"{resource.kind.lower()} {key.name}")
    return submitted


async def _resource(client: Client, document: JSON) -> ResourceType:
    group, slash, version = document["apiVersion"].rpartition("/")
    known = find_resource_type(group, document["kind"])
    if known is not None and known.version == version:
        return known
    return await _discovered(client, group, version if slash else document["apiVersion"], document["kind"])


async def _discovered(client: Client, group: str, version: str, kind: str) -> ResourceType:
    path = f"/apis/{group}/{version}" if group else f"/api/{version}"
    try:
        found = msgspec.json.decode((await client.raw(Request("GET", path))).body)
    except NotFound as error:
        raise SubmitError(f"the API server does not know {path.removeprefix('/apis/')} {kind}") from error
    for row in found.get("resources", ()):
        if row.get("kind") == kind and "/" not in row["name"]:
            return ResourceType(group, version, kind, row["name"], bool(row.get("namespaced")))
    raise SubmitError(f"the API server does not know {path.removeprefix('/apis/')} {kind}")


def _placed(document: JSON, resource: ResourceType, namespace: str) -> JSON:
    metadata = dict(document.get("metadata") or {})
    if resource.namespaced:
        metadata.setdefault("namespace", namespace)
    if not metadata.get("name") and not metadata.get("generateName"):
        raise SubmitError(f"{resource.kind}: metadata.name: Required value")
    return {**document, "metadata": metadata}


async def _submit_job(client: Client, clock: Clock, body: JSON, key: Key, *, replace: bool) -> Key:
    try:
        return decode(Job, await client.create(JOBS, body)).key
    except AlreadyExists as error:
        job = await client.get(Job, key)
        phase = job.status.state.phase
        if phase not in STOPPED_PHASES:
            raise SubmitError(f"job {key} exists and is {phase or 'new'}; delete it first") from error
        if not replace:
            raise SubmitError(f"job {key} exists and is {phase}; use --replace to run it again") from error
        await _delete_and_wait(client, clock, JOBS, key)
        return decode(Job, await client.create(JOBS, body)).key


async def _submit_batch_job(client: Client, clock: Clock, body: JSON, key: Key, *, replace: bool) -> Key:
    """Kubernetes' own; its pod template cannot be changed, so it is made again or refused like Volcano's."""
    try:
        return decode(BatchJob, await client.create(BATCH_JOBS, body)).key
    except AlreadyExists as error:
        end = (await client.get(BatchJob, key)).end_condition
        if end is None:
            raise SubmitError(f"job {key} (batch/v1) exists and has not ended; delete it first") from error
        if not replace:
            raise SubmitError(
                f"job {key} (batch/v1) exists and is {end['type']}; use --replace to run it again"
            ) from error
        await _delete_and_wait(client, clock, BATCH_JOBS, key)
        return decode(BatchJob, await client.create(BATCH_JOBS, body)).key


async def _delete_and_wait(client: Client, clock: Clock, resource: ResourceType, key: Key) -> None:
    await client.delete(resource, key, {"propagationPolicy": "Foreground"})
    for _ in range(600):
        try:
            await client.get_json(resource, key)
        except NotFound:
            return
        await clock.sleep(timedelta(milliseconds=100))
    raise SubmitError(f"job {key} is still there a minute after it was deleted")


async def _apply(client: Client, resource: ResourceType, body: JSON, key: Key) -> None:
    try:
        await client.create(resource, body)
    except AlreadyExists:
        await client.patch(resource, key, body, kind="apply", fieldManager="volcano-run", force="true")
