"""kopf, with which operators are written in Python: it discovers, lists, watches and patches by itself.

kopf reads $KUBECONFIG. Each handler is one question; what kopf does for a handler to be called is what the question is about.
"""

import asyncio
import logging
from collections.abc import Callable

import kopf
from report import Report

import kubernetes

report = Report()
logging.disable(logging.CRITICAL)
LIMIT_SECONDS = 60
THINGS = {"group": "example.com", "version": "v1", "namespace": report.namespace, "plural": "things"}
api = kubernetes.config.new_client_from_config(report.kubeconfig)
core, custom = kubernetes.client.CoreV1Api(api), kubernetes.client.CustomObjectsApi(api)
seen: dict[str, asyncio.Event] = {}


def happened(what: str) -> asyncio.Event:
    return seen.setdefault(what, asyncio.Event())


@kopf.on.startup()
def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    settings.posting.enabled = True
    settings.posting.level = logging.INFO


@kopf.on.create("example.com", "v1", "things")
async def created(spec, patch, body, **_: object):
    """kopf has discovered the kind, watches it, and writes what the handler leaves in `patch`."""
    patch.spec["size"] = spec["size"] + 1
    kopf.event(body, type="Normal", reason="Created", message="by kopf")
    happened("discovery").set()


@kopf.on.field("example.com", "v1", "things", field="spec.size")
async def resized(new, **_: object):
    if new == 2:
        happened("merge patch").set()
    elif new == 5:
        happened("watch").set()


@kopf.on.delete("example.com", "v1", "things")
async def deleted(**_: object):
    """Called while kopf's finalizer keeps the object."""
    happened("finalizers").set()


@kopf.index("", "v1", "configmaps", labels={"app": "family"})
async def by_name(name, **_: object):
    happened("list by label").set()
    return {name: 1}


@kopf.on.event("", "v1", "events")
async def recorded(event, **_: object):
    if event["object"].get("message") == "by kopf":
        happened("events").set()


def create_thing() -> None:
    thing = {"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": {"size": 1}}
    custom.create_namespaced_custom_object(**THINGS, body=thing)


async def question(name: str, action: Callable[[], object] | None = None) -> None:
    """Do something, and wait for the handler that answers."""
    try:
        if action is not None:
            await asyncio.to_thread(action)
        await asyncio.wait_for(happened(name).wait(), LIMIT_SECONDS)
        report.add(name, "yes")
    except Exception as error:  # whatever a client raises is the answer
        report.add(name, f"{type(error).__name__}: {error}")


async def main() -> None:
    core.create_namespaced_config_map(
        report.namespace, {"metadata": {"name": "c0", "labels": {"app": "family"}}, "data": {"k": "v"}}
    )
    stop = asyncio.Event()
    operator = asyncio.create_task(kopf.operator(namespaces=[report.namespace], standalone=True, stop_flag=stop))
    await question("list by label")
    await question("discovery", create_thing)
    await question("merge patch")
    await question(
        "watch", lambda: custom.patch_namespaced_custom_object(**THINGS, name="t", body={"spec": {"size": 5}})
    )
    await question("events")
    await question("finalizers", lambda: custom.delete_namespaced_custom_object(**THINGS, name="t"))
    stop.set()
    await operator


asyncio.run(main())
report.print()
