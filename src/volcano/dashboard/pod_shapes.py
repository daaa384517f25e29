"""DeviceShapes: which shapes the pods have that ask for devices, kept current with each change of a pod."""

from __future__ import annotations

from collections import Counter

from volcano.api.core import Pod
from volcano.api.pods.requests import pod_requests
from volcano.api.pods.stranded import MAX_SHAPES, PodShape, in_units, shape_key
from volcano.dashboard.watched import Watched
from volcano.machinery.world import Change


class DeviceShapes:
    def __init__(self, watched: Watched) -> None:
        self._key_of: dict[str, bytes] = {}  # by pod UID
        self._counts: Counter[bytes] = Counter()
        self._examples: dict[bytes, tuple[dict[str, float], Pod]] = {}
        watched.listen(Pod, self._take)

    def most_frequent(self) -> list[PodShape]:
        ordered = sorted(self._counts.items(), key=lambda each: (-each[1], each[0]))[:MAX_SHAPES]
        return [PodShape(self._examples[key][0], float(count), self._examples[key][1]) for key, count in ordered]

    def _take(self, change: Change[Pod]) -> None:
        pod = change.object
        if change.new is None:
            self._forget(pod.uid)
        elif pod.uid not in self._key_of:  # what a pod requests does not change
            requests = in_units(pod_requests(pod.spec))
            if any(is_device(name) for name in requests):
                key = self._key_of[pod.uid] = shape_key(requests, pod)
                self._counts[key] += 1
                self._examples.setdefault(key, (requests, pod))

    def _forget(self, uid: str) -> None:
        key = self._key_of.pop(uid, None)
        if key is None:
            return
        self._counts[key] -= 1
        if not self._counts[key]:
            del self._counts[key], self._examples[key]


def is_device(resource: str) -> bool:
    """An extended resource, such as nvidia.com/gpu."""
    return "/" in resource and not resource.startswith(("hugepages-", "kubernetes.io/"))
