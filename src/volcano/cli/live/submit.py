"""Submitting manifests to an API server, in order: what `volcano run` does before it watches."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import msgspec

from volcano.api.batch import STOPPED_PHASES, CronJob, Job
from volcano.api.decode import decode
from volcano.api.errors import AlreadyExists, NotFound
from volcano.api.flow import JobFlow
from volcano.api.manifests import ManifestError
from volcano.api.meta import JSON, Key
from volcano.api.scheme import ResourceType, find_resource_type, resource_type
from volcano.cli.live.job_follower import JobMaker
from volcano.cli.manifest_files import checked_documents
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Request

JOBS = resource_type(Job)
MAKERS = (resource_type(JobFlow), resource_type(CronJob))


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
    """What can be followed to an end: Jobs, and flows and cron jobs, which make Jobs."""

    jobs: list[Key]
    makers: list[JobMaker]


async def submit(
    client: Client, clock: Clock, documents: list[JSON], *, replace: bool, namespace: str
) -> SubmittedObjects:
    """Apply every object in order."""
    jobs: list[Key] = []
    makers: list[JobMaker] = []
    for document in documents:
        resource = await _resource(client, document)
        body = _placed(document, resource, namespace)
        key = Key(body["metadata"].get("namespace", ""), body["metadata"].get("name", ""))
        if resource is JOBS:
            jobs.append(await _submit_job(client, clock, body, key, replace=replace))
        else:
            await _apply(client, resource, body, key)
            makers += [JobMaker(resource.kind, key)] if resource in MAKERS else []
    return SubmittedObjects(jobs, makers)


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
        await _delete_and_wait(client, clock, key)
        return decode(Job, await client.create(JOBS, body)).key


async def _delete_and_wait(client: Client, clock: Clock, key: Key) -> None:
    await client.delete(JOBS, key, {"propagationPolicy": "Foreground"})
    for _ in range(600):
        try:
            await client.get(Job, key)
        except NotFound:
            return
        await clock.sleep(timedelta(milliseconds=100))
    raise SubmitError(f"job {key} is still there a minute after it was deleted")


async def _apply(client: Client, resource: ResourceType, body: JSON, key: Key) -> None:
    try:
        await client.create(resource, body)
    except AlreadyExists:
        await client.patch(resource, key, body, kind="apply", fieldManager="volcano-run", force="true")
