"""Job plugins: one file each, and here what the controller asks of all plugins of a job at once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from volcano.api.batch import Job, TaskSpec
from volcano.api.jobs.plugins import JOB_PLUGINS, parse_arguments
from volcano.api.meta import JSON
from volcano.controllers.job.plugins.env import Env
from volcano.controllers.job.plugins.hcclrank import HcclRank
from volcano.controllers.job.plugins.mpi import Mpi
from volcano.controllers.job.plugins.plugin import JobPluginBase, JobPluginError
from volcano.controllers.job.plugins.pytorch import PyTorch
from volcano.controllers.job.plugins.ray import Ray
from volcano.controllers.job.plugins.ssh import Ssh
from volcano.controllers.job.plugins.svc import Svc
from volcano.controllers.job.plugins.tensorflow import TensorFlow
from volcano.machinery.plan import Plan

PLUGINS: Final[Mapping[str, type[JobPluginBase]]] = {
    plugin.name: plugin for plugin in (Env, Svc, Ssh, TensorFlow, PyTorch, Mpi, Ray, HcclRank)
}
"""In the order in which they change pods: hcclrank reads the rank that pytorch gives."""


def plugins_of(job: Job) -> list[JobPluginBase]:
    """The plugins a job lists, in the order of the table; JobPluginError for an unknown name."""
    unknown = sorted(name for name in job.spec.plugins if name not in PLUGINS)
    if unknown:
        raise JobPluginError(f"unknown plugin {unknown[0]!r}")
    return [_make(job, name) for name in PLUGINS if name in job.spec.plugins]


def _make(job: Job, name: str) -> JobPluginBase:
    arguments = job.spec.plugins.get(name) or []
    return PLUGINS[name](job, parse_arguments(JOB_PLUGINS[name], arguments))


def removal(job: Job, names: Iterable[str]) -> Plan:
    """Remove the objects of these plugins."""
    known = sorted(name for name in names if name in PLUGINS)
    return tuple(step for name in known for step in _make(job, name).removal())


def digest(plugins: Iterable[JobPluginBase]) -> str:
    """Changes when something that must follow the job's spec changes; empty when nothing must."""
    followed = {plugin.name: plugin.refreshed() for plugin in plugins}
    followed = {name: value for name, value in followed.items() if value}
    return hashlib.sha256(msgspec.json.encode(followed, order="sorted")).hexdigest()[:16] if followed else ""


def change_pod(plugins: Iterable[JobPluginBase], pod: JSON, task: TaskSpec, index: int) -> None:
    for plugin in plugins:
        plugin.on_pod(pod, task, index)


__all__ = ["PLUGINS", "JobPluginBase", "JobPluginError", "change_pod", "digest", "plugins_of", "removal"]
