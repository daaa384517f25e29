"""No card, slice, memory, core or number is ever given beyond what a node registers, whatever happens meanwhile.

Random sequences by seed: pods come, are bound, fail to be bound, change while their bind is on its way, are deleted at
once or slowly; the scheduler is killed between two writes and starts again; nodes register other cards. The
scheduler's own cache, cycle and committer decide; what they wrote is added up here by other rules than theirs.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests import needs
from volcano.api import core, scheduling
from volcano.api.decode import decode_object
from volcano.machinery.world import Mirror
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.cache import CacheSettings, PendingChanges
from volcano.scheduler.commit import BindPlan
from volcano.scheduler.framework.config import parse_config
from volcano.scheduler.service.decider import Decider, TurnInput
from volcano.scheduler.service.registry import Registry

SEQUENCES, SEQUENCES_OF_A_LONG_RUN, STEPS = 240, 6000, 22
BLOCKS = 8
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
GPU_IDS, CHIP, INDEX = "volcano.sh/vgpu-ids-new", "huawei.com/npu-core", "volcano.sh/gpu-index"
ASCEND, KUNLUN = "hami.io/Ascend910B3-devices-allocated", "hami.io/xpu-devices-allocated"
MIG_GROUPS = {  # of the geometry below: instances of each group as (memory, count)
    "a": [(10, 4)],
    "b": [(20, 1), (10, 2)],
    "c": [(40, 1)],
}
GEOMETRY = {
    "models": ["CUT"],
    "allowedGeometries": [
        {"group": name, "geometries": [{"name": f"{m}", "memory": m, "count": n} for m, n in instances]}
        for name, instances in MIG_GROUPS.items()
    ],
}
EVERY_FAMILY = {
    "deviceshare.VGPUEnable": True,
    "deviceshare.AscendHAMiVNPUEnable": True,
    "deviceshare.AscendMindClusterVNPUEnable": True,
    "deviceshare.Families": "kunlun",
    "deviceshare.DeviceConfig": {"nvidia": {"knownMigGeometries": [GEOMETRY]}},
}
CONFIGURATIONS = [
    EVERY_FAMILY,
    EVERY_FAMILY | {"deviceshare.SchedulePolicy": "binpack", "deviceshare.ScheduleWeight": 1},
    EVERY_FAMILY | {"deviceshare.SchedulePolicy": "spread"},
    {"deviceshare.GPUSharingEnable": True},
    {"deviceshare.GPUNumberEnable": True},
]
TEMPLATES = {"vir01": (1, 1), "vir02": (2, 2), "vir02_1c": (2, 1), "vir04": (4, 4), "vir04_3c": (4, 3),
             "vir04_3c_ndvpp": (4, 3), "vir04_4c_dvpp": (4, 4)}  # fmt: skip


def a_config(arguments: dict[str, Any], *, fragmentation: bool) -> Any:
    plugins = [{"name": "priority"}, {"name": "gang"}, {"name": "predicates"}]
    plugins.append({"name": "deviceshare", "arguments": arguments})
    plugins += [{"name": "fragmentation"}] if fragmentation else []
    text = json.dumps({"actions": "enqueue, allocate, preempt", "tiers": [{"plugins": plugins}]})
    return parse_config(text, known_actions=ACTIONS)


class CardCluster:
    """The API server's objects, one scheduler that follows them, and its binds that are on their way."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        arguments = self.chance.choice(CONFIGURATIONS)
        self.shares_by_index = "deviceshare.VGPUEnable" not in arguments
        self.by_number = "deviceshare.GPUNumberEnable" in arguments
        self.config = a_config(arguments, fragmentation=self.chance.random() < 0.3)
        self.now, self.number, self.turns = BEGIN, 0, 0
        self.pods: dict[str, dict[str, Any]] = {}
        self.others: list[Any] = []
        self.nodes: dict[str, dict[str, Any]] = {}
        self.in_flight: list[BindPlan] = []
        self.said: list[str] = []
        queue = {"metadata": {"name": "q"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
        self.others.append(decode_object(scheduling.Queue, queue))
        for place in range(self.chance.randint(1, 3)):
            self.register(f"n{place}")
        self.restart()

    # -- objects -------------------------------------------------------------------------------------------------------
    def register(self, name: str) -> None:
        draw = self.chance
        has = {"cpu": "64", "memory": "64Gi", "pods": "99"}
        annotations, labels = {}, {}
        if self.shares_by_index:
            cards = draw.randint(1, 3)
            has |= {"volcano.sh/gpu-memory": str(1000 * cards), "volcano.sh/gpu-number": str(cards)}
            annotations["volcano.sh/gpu-unhealthy-ids"] = draw.choice(["", "0", "1"])
        else:
            has |= {"volcano.sh/vgpu-number": "99", "volcano.sh/vgpu-memory": "9999", "volcano.sh/vgpu-cores": "999"}
            cards = [
                f"{name}-g{place},{draw.choice([2, 3, 9])},{draw.choice([40, 100])},NVIDIA-{kind},true,{mode}"
                for place in range(draw.randint(0, 3))
                for kind, mode in [draw.choice([("CUT", "mig"), ("CUT", "hami-core"), ("T4", "hami-core")])]
            ]
            annotations["volcano.sh/node-vgpu-register"] = ":".join(cards) + ":"
            has["huawei.com/Ascend910B3"] = has["kunlunxin.com/vxpu"] = "20"
            annotations["hami.io/node-register-Ascend910B3"] = json.dumps(
                [{"id": f"{name}-a{p}", "count": 4, "devmem": 65536, "devcore": 20, "type": "Ascend910B3",
                  "custominfo": {"NetworkID": p % 2}} for p in range(draw.randint(0, 2))]
            )  # fmt: skip
            annotations["hami.io/node-register-xpu"] = json.dumps(
                [{"id": f"{name}-x{p}", "count": 4, "devmem": 98304, "devcore": 100, "type": "P800"}
                 for p in range(draw.randint(0, 1))]
            )  # fmt: skip
            has[CHIP] = str(8 * draw.randint(0, 2))
            labels = {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8"}
            if draw.random() < 0.1:
                annotations["volcano.sh/node-vgpu-register"] = draw.choice(["broken", "a,b,c,d,e,f:", ""])
        meta = {"name": name, "uid": name, "annotations": annotations, "labels": labels}
        self.nodes[name] = {"metadata": meta, "status": {"allocatable": has, "capacity": has}}

    def wish(self) -> tuple[dict[str, str], dict[str, str]]:
        draw = self.chance
        if self.shares_by_index:
            name = "volcano.sh/gpu-number" if self.by_number else "volcano.sh/gpu-memory"
            return {name: str(draw.choice([1, 2]) if self.by_number else draw.choice([300, 500, 1000]))}, {}
        kind = draw.choice(["gpu", "gpu", "gpu", "ascend", "xpu", "chip"])
        if kind == "gpu":
            asked = {
                "volcano.sh/vgpu-number": draw.choice([1, 1, 2]),
                "volcano.sh/vgpu-cores": draw.choice([0, 30, 100]),
            }
            memory = draw.choice([0, 8, 15, 30])
            return {k: str(v) for k, v in (asked | ({"volcano.sh/vgpu-memory": memory} if memory else {})).items()}, {}
        if kind == "chip":
            labels = {"ring-controller.atlas": "ascend-310P", "vnpu-level": draw.choice(["low", "high"])}
            return {CHIP: str(draw.choice([1, 2, 4, 8, 16]))}, labels | {
                "vnpu-dvpp": draw.choice(["yes", "no", "null"])
            }
        count = "huawei.com/Ascend910B3" if kind == "ascend" else "kunlunxin.com/vxpu"
        memory = draw.choice(["10000", "30000", "60000"])
        return {count: "1", f"{count}-memory": memory} if draw.random() < 0.7 else {count: str(draw.choice([1, 2]))}, {}

    def submit(self) -> None:
        group, size = f"g{self.number}", self.chance.choice([1, 1, 2, 3])
        body = {"metadata": {"name": group, "namespace": "ns", "uid": group},
                "spec": {"queue": "q", "minMember": size}, "status": {"phase": "Inqueue"}}  # fmt: skip
        self.others.append(decode_object(scheduling.PodGroup, body))
        self.mirror.put(self.others[-1])
        asked, labels = self.wish()
        containers = self.chance.choice([1, 1, 2])
        resources = {"limits": asked, "requests": {"cpu": "100m", **asked}}
        for _ in range(size):
            name = f"p{self.number}"
            self.number += 1
            self.pods[name] = {
                "metadata": {"name": name, "namespace": "ns", "uid": name, "labels": labels,
                             "annotations": {"scheduling.k8s.io/group-name": group}},
                "spec": {"schedulerName": "volcano", "priority": self.chance.choice([0, 10]),
                         "containers": [{"resources": resources}] * containers},
                "status": {"phase": "Pending"},
            }  # fmt: skip
            self.show(name)

    # -- the scheduler -------------------------------------------------------------------------------------------------
    def restart(self) -> None:
        """A new process: it knows what the API server shows, and nothing of what was on its way."""
        self.in_flight = []
        self.mirror, self.pending = Mirror(lambda: self.now), PendingChanges()
        for item in (*self.others, *(decode_object(core.Node, node) for node in self.nodes.values())):
            self.mirror.put(item)
        for name in self.pods:
            self.show(name)
        self.pending.follow(self.mirror, lambda urgent: None)
        self.pending.reload(self.mirror)
        self.decider = Decider(CacheSettings(), "volcano")

    def show(self, name: str) -> None:
        self.mirror.put(decode_object(core.Pod, self.pods[name]))

    def cycle(self) -> None:
        self.turns += 1
        self.now += timedelta(seconds=1)
        turn = TurnInput(
            number=self.turns, now=self.now, batch=self.pending.take(), config=self.config, config_text="",
            registry=Registry(), groups_in_flight=frozenset(), unwritten=(),
        )  # fmt: skip
        before = self.use()
        result = self.decider.decide(turn)
        self.pending.confirm(result.confirmed)
        self.pending.assume(result.bound, result.evicted, result.devices, result.annotations)
        self.in_flight += result.commitment.binds
        for eviction in result.commitment.evictions:
            self.delete(eviction.pod.name)
        self.check(before)

    def finish_bind(self) -> None:
        """The answer to one of the binds: done, failed, or done with an answer that was lost."""
        if not self.in_flight:
            return
        plan = self.in_flight.pop(self.chance.randrange(len(self.in_flight)))
        pod = self.pods.get(plan.pod.name)
        done = self.chance.random() < 0.8 and pod is not None and "deletionTimestamp" not in pod["metadata"]
        if done:
            pod["spec"]["nodeName"], pod["status"]["phase"] = plan.node, "Running"
            pod["metadata"]["annotations"] |= plan.annotations
            if self.chance.random() < 0.7:
                pod["metadata"]["annotations"]["huawei.com/AscendReal"] = "x"
            self.show(plan.pod.name)
            if self.chance.random() < 0.9:
                return
        self.pending.forget(plan.uid, self.mirror.get(core.Pod, plan.pod.key))

    def delete(self, name: str) -> None:
        """A pending pod goes at once; one that runs has its cards until it is gone."""
        if self.pods[name]["spec"].get("nodeName"):
            self.pods[name]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
            self.show(name)
        elif name not in {plan.pod.name for plan in self.in_flight}:
            self.remove(name)

    def remove(self, name: str) -> None:
        pod = decode_object(core.Pod, self.pods.pop(name))
        self.mirror.remove(core.Pod, pod.key, pod)

    # -- what may happen -----------------------------------------------------------------------------------------------
    def step(self) -> None:
        what = self.chance.choices(
            ["submit", "cycle", "bind", "delete", "gone", "finish", "touch", "kill", "register"],
            [6, 8, 8, 4, 2, 1, 3, 1, 1],
        )[0]
        self.said.append(what)
        names = list(self.pods)
        if what == "submit":
            self.submit()
        elif what == "cycle":
            self.cycle()
        elif what == "bind":
            self.finish_bind()
        elif what == "kill":
            for _ in range(self.chance.randint(0, 2)):
                self.finish_bind()
            self.restart()
        elif what == "register":
            name = self.chance.choice(list(self.nodes))
            self.register(name)
            self.mirror.put(decode_object(core.Node, self.nodes[name]))
        elif names:
            self._to_a_pod(what, self.chance.choice(names))

    def _to_a_pod(self, what: str, name: str) -> None:
        pod = self.pods[name]
        if what == "delete":
            self.delete(name)
        elif what == "gone" and "deletionTimestamp" in pod["metadata"]:
            self.remove(name)
        elif what == "finish" and pod["spec"].get("nodeName"):
            pod["status"]["phase"] = "Succeeded"
            self.show(name)
        elif what == "touch":
            pod["metadata"]["annotations"]["touched"] = str(self.number)
            self.show(name)

    # -- what is held --------------------------------------------------------------------------------------------------
    def use(self) -> dict[str, list[tuple[float, float, str]]]:
        """Of every card (node/id) what its pods have: memory, cores, slice. Binds on their way count as done."""
        found: dict[str, list[tuple[float, float, str]]] = defaultdict(list)
        for pod in self.pods.values():
            if pod["spec"].get("nodeName") and pod["status"]["phase"] != "Succeeded":
                self.add(found, pod["spec"]["nodeName"], pod["metadata"]["annotations"], pod)
        for plan in self.in_flight:
            if plan.pod.name in self.pods:
                self.add(found, plan.node, plan.annotations, self.pods[plan.pod.name])
        return found

    def add(self, found: dict[str, list[Any]], node: str, told: Any, pod: dict[str, Any]) -> None:
        for key in (GPU_IDS, ASCEND, KUNLUN):
            for id, memory, cores in re.findall(r"([^,:;]+),[^,]*,(\d+),(\d+):", told.get(key, "")):
                card, _, cut = id.partition("[")
                found[f"{node}/{card}"].append((float(memory), float(cores), cut.rstrip("]")))
        asked = pod["spec"]["containers"]
        for index in filter(None, told.get(INDEX, "").split(",")):
            memory = sum(float(c["resources"]["limits"].get("volcano.sh/gpu-memory", 0)) for c in asked)
            found[f"{node}/{index}"].append((memory, 0.0, ""))
        for chip in filter(None, told.get(CHIP, "").split(",")):
            number, _, template = chip.partition("-")
            found[f"{node}/{CHIP}{number}"].append((float(TEMPLATES.get(template, (8, 0))[0]), 0.0, template))

    def check(self, before: dict[str, list[Any]]) -> None:
        """Cards that this cycle gave out are not overbooked."""
        limits = dict(self.limits())
        for card, held in self.use().items():
            if Counter(held) == Counter(before.get(card, [])):
                continue  # a node may have registered less than its pods have
            assert card in limits, f"{card} is not registered: {held}"
            users, memory, cores, form = limits[card]
            what = f"{card}: {held} of {limits[card]} after {self.said}"
            assert len(held) <= users, what
            assert sum(cores for _, cores, _ in held) <= cores, what
            if form == "mig":
                self.check_slices([cut for _, _, cut in held], what)
            else:
                assert sum(each for each, _, _ in held) <= memory, what
            if form == "chip":
                cut = [TEMPLATES[template] for _, _, template in held if template]
                assert sum(cpus for _, cpus in cut) <= 7, what
                assert len(held) == 1 or len(cut) == len(held), what

    def check_slices(self, labels: list[str], what: str) -> None:
        assert len(set(labels)) == len(labels), what
        groups = {label.rpartition("-")[0] for label in labels}
        assert len(groups) == 1, what
        sizes = [memory for memory, count in MIG_GROUPS[groups.pop()] for _ in range(count)]
        assert all(int(label.rpartition("-")[2]) < len(sizes) for label in labels), what

    def limits(self) -> Iterator[tuple[str, tuple[float, float, float, str]]]:
        """Of every registered card: users, memory, cores, form."""
        for name, node in self.nodes.items():
            told, has = node["metadata"]["annotations"], node["status"]["allocatable"]
            for users, memory, kind, mode, id in [
                (*e.split(",")[1:4], e.split(",")[5], e.split(",")[0])
                for e in told.get("volcano.sh/node-vgpu-register", "").split(":")
                if e.count(",") == 5 and e.split(",")[1].isdigit()
            ]:
                form = "mig" if mode == "mig" and "CUT" in kind else ""
                yield f"{name}/{id}", (float(users), float(memory), 100.0, form)
            for key in ("hami.io/node-register-Ascend910B3", "hami.io/node-register-xpu"):
                for card in json.loads(told.get(key, "[]")):
                    yield f"{name}/{card['id']}", (card["count"], card["devmem"], card["devcore"], "")
            for chip in range(int(has.get(CHIP, 0)) // 8):
                yield f"{name}/{CHIP}{chip}", (99.0, 8.0, 100.0, "chip")
            for index in range(int(has.get("volcano.sh/gpu-number", 0))):
                if str(index) != told["volcano.sh/gpu-unhealthy-ids"]:
                    yield f"{name}/{index}", (1.0 if self.by_number else 99.0, 1000.0, 100.0, "")


def run(seeds: range) -> int:
    binds = 0
    for seed in seeds:
        cluster = CardCluster(seed)
        for _ in range(STEPS):
            cluster.step()
        for _ in range(3):
            cluster.cycle()
            while cluster.in_flight:
                cluster.finish_bind()
        binds += sum(1 for pod in cluster.pods.values() if pod["spec"].get("nodeName"))
    return binds


@pytest.mark.parametrize("block", range(BLOCKS))
def test_nothing_is_given_beyond_what_nodes_have(block: int) -> None:
    size = SEQUENCES // BLOCKS
    assert run(range(block * size, (block + 1) * size)) > size  # pods were bound at all


@needs.MANY_MINUTES
@pytest.mark.timeout(3600)
def test_nothing_is_given_beyond_what_nodes_have_in_thousands_of_sequences() -> None:
    assert run(range(10_000, 10_000 + SEQUENCES_OF_A_LONG_RUN)) > SEQUENCES_OF_A_LONG_RUN
