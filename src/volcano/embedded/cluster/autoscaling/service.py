"""Runs the autoscalers: reads scales, pods and metrics at each interval, and writes scales and statuses."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Final

from volcano.api.core import HorizontalPodAutoscaler, Pod
from volcano.api.errors import ApiError
from volcano.api.meta import JSON, Key
from volcano.api.scheme import POD_METRICS, ResourceType, find_resource_type, resource_type
from volcano.embedded.cluster.autoscaling.decision import ScalingDecision, decide_scaling, without_scale
from volcano.embedded.cluster.autoscaling.pace import ScalingMemory
from volcano.embedded.cluster.autoscaling.usage import read_scaled_pod, read_usage
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.events import EventRecorder
from volcano.machinery.informer import Informer
from volcano.machinery.plan import Record, merge_difference, ref
from volcano.machinery.world import Change, Mirror

log = logging.getLogger(__name__)
SYNC_INTERVAL: Final = timedelta(seconds=15)
AUTOSCALERS: Final = resource_type(HorizontalPodAutoscaler)


class AutoscalingService:
    """The autoscalers of all namespaces, one after the other."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._mirror = Mirror(clock.now)
        self._informer = Informer(client, self._mirror, clock, HorizontalPodAutoscaler)
        self._recorder = EventRecorder(client, clock, "horizontal-pod-autoscaler")
        self._memories: dict[str, ScalingMemory] = {}  # by UID
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        self._mirror.listen(HorizontalPodAutoscaler, self._take)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._informer.run())
            group.create_task(self._recorder.run())
            group.create_task(self._follow())

    def _take(self, change: Change[HorizontalPodAutoscaler]) -> None:
        if change.new is None:
            self._memories.pop(change.object.uid, None)
        elif change.old is None or change.old.spec != change.new.spec:
            self._changed.set()

    async def _follow(self) -> None:
        """Without autoscalers nothing is asked; with some, all at each interval, and a changed one at once."""
        while True:
            autoscalers = self._mirror.all(HorizontalPodAutoscaler)
            self._changed.clear()
            for each in autoscalers:
                try:
                    await self._scale(each)
                except (ApiError, OSError) as error:
                    log.warning("autoscaler %s: %s", each.key, error)
            if autoscalers:
                await self._pause()
            else:
                await self._changed.wait()

    async def _pause(self) -> None:
        sleeping = asyncio.ensure_future(self._clock.sleep(SYNC_INTERVAL))
        waking = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((sleeping, waking), return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            waking.cancel()

    async def _scale(self, autoscaler: HorizontalPodAutoscaler) -> None:
        target = _target_type(autoscaler)
        key = Key(autoscaler.namespace, str((autoscaler.spec.get("scaleTargetRef") or {}).get("name")))
        decision = await self._decide(autoscaler, target, key)
        if decision.replicas is not None and target is not None:
            body = {"spec": {"replicas": decision.replicas}}
            await self._client.patch(target, key, body, subresource="scale")
        difference = merge_difference(autoscaler.status or {}, decision.status)
        if difference:
            await self._client.patch(AUTOSCALERS, autoscaler.key, {"status": difference}, subresource="status")
        for kind, reason, message in decision.events:
            self._recorder.record(Record(ref(autoscaler), reason, message, "Normal" if kind == "Normal" else "Warning"))

    async def _decide(
        self, autoscaler: HorizontalPodAutoscaler, target: ResourceType | None, key: Key
    ) -> ScalingDecision:
        now = self._clock.now()
        if target is None:
            reference = autoscaler.spec.get("scaleTargetRef") or {}
            missing = f'no matches for kind "{reference.get("kind")}" in group "{reference.get("apiVersion")}"'
            return without_scale(autoscaler, missing, now)
        try:
            scale = await self._client.get_json(target, key, "scale")
        except ApiError as error:
            return without_scale(autoscaler, str(error), now)
        selector = str((scale.get("status") or {}).get("selector") or "")
        pods = await self._listed(resource_type(Pod), key.namespace, selector)
        metrics = await self._listed(POD_METRICS, key.namespace, selector)
        return decide_scaling(
            autoscaler,
            int((scale.get("spec") or {}).get("replicas") or 0),
            [read_scaled_pod(pod) for pod in pods],
            {each["metadata"]["name"]: read_usage(each) for each in metrics},
            self._memories.setdefault(autoscaler.uid, ScalingMemory()),
            now,
        )

    async def _listed(self, resource: ResourceType, namespace: str, selector: str) -> list[JSON]:
        if not selector:
            return []
        listed = await self._client.list_json(resource, namespace, labelSelector=selector)
        items: list[JSON] = listed.get("items") or []
        return items


def _target_type(autoscaler: HorizontalPodAutoscaler) -> ResourceType | None:
    """The kind that is scaled, where it is one that has a scale."""
    reference = autoscaler.spec.get("scaleTargetRef") or {}
    group = str(reference.get("apiVersion") or "").rpartition("/")[0]
    found = find_resource_type(group, str(reference.get("kind")))
    return found if found is not None and "scale" in found.subresources else None
