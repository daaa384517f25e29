"""Demands: what pods want of a family of cards, by their limits, annotations and labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from volcano.api.core import Container, Pod
from volcano.api.device_families import VGPU_PERCENTAGE, DemandForm, DeviceFamily, DomainRule, RegisterForm
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.scheduler.core.cards import UNSTATED, Portion

HAMI_CORE: Final = "hami-core"
PARTIAL_ON_SEVERAL: Final = "vNPU does not support partial memory allocation when requesting multiple devices"
UNNAMED_PERCENTAGE: Final = f"the device configuration does not name {VGPU_PERCENTAGE}"
NPU_LABEL, NPU_CHIP = "ring-controller.atlas", "ascend-310P"
LEVEL_LABEL, DECODER_LABEL = "vnpu-level", "vnpu-dvpp"
DEMAND_LABELS: Final = (NPU_LABEL, LEVEL_LABEL, DECODER_LABEL)
MAX_CARDS_OF_A_POD: Final = 1024
DOWNGRADED: Final = {"vir02": "vir02_1c", "vir04": "vir04_3c"}
"""Templates with fewer cpus, which a pod gets where the others do not fit."""


@dataclass(slots=True, frozen=True)
class CardDemand:
    """What each container gets; the same in a form that is less good; and why nothing can be given at all."""

    portions: tuple[Portion, ...] = ()
    second: tuple[Portion, ...] = ()
    problem: str = ""


NOTHING: Final = CardDemand()


def demand_of(family: DeviceFamily, pod: Pod) -> CardDemand:
    return FORMS[family.demand](family, pod)


def names_resource(family: DeviceFamily, pod: Pod) -> bool:
    return _names(pod, family.count)


def _names(pod: Pod, resource: str) -> bool:
    return any(resource in (container.resources.limits or {}) for container in pod.spec.containers)


def asks_for_soft_share(family: DeviceFamily, pod: Pod) -> bool:
    return bool(family.soft_mode) and pod.annotations.get(family.soft_mode) == HAMI_CORE


def _of_containers(family: DeviceFamily, pod: Pod) -> CardDemand:
    portions = [_portion(family, pod, container) for container in pod.spec.containers]
    if not any(portion.count for portion in portions):
        return NOTHING
    if not family.percentage and family.form is RegisterForm.VOLCANO and _names(pod, VGPU_PERCENTAGE):
        return CardDemand(tuple(portions), problem=UNNAMED_PERCENTAGE)
    partial = family.templates and family.containers_apart and not asks_for_soft_share(family, pod)
    several = [portion for portion in portions if portion.count > 1 and portion.percent == UNSTATED]
    if partial and any(portion.memory < family.memory_allocatable for portion in several):
        return CardDemand(tuple(portions), problem=PARTIAL_ON_SEVERAL)
    return CardDemand(tuple(portions))


def _portion(family: DeviceFamily, pod: Pod, container: Container) -> Portion:
    limits, requests = container.resources.limits or {}, container.resources.requests or {}
    if family.count not in limits and (not family.memory or family.memory not in limits):
        return Portion(0)

    def stated(name: str) -> int:
        return _whole(limits.get(name, requests.get(name))) if name else 0

    memory = float(stated(family.memory))
    count = min(_whole(limits[family.count]), MAX_CARDS_OF_A_POD) if family.count in limits else 1
    if memory and family.templates and not asks_for_soft_share(family, pod):
        memory = rounded(family, memory)
    percent = UNSTATED if memory else 100
    if family.percentage and (family.percentage in limits or family.percentage in requests):
        percent = min(max(stated(family.percentage), 0), 100)
    asked = family.domains is DomainRule.ASKED and pod.annotations.get(family.bind_domain) == "true"
    return Portion(
        count,
        memory if percent == UNSTATED else 0.0,
        percent,
        float(stated(family.cores)),
        one_domain=asked,
        near=family.domains is DomainRule.PREFERRED,
        apart=family.containers_apart,
    )


def rounded(family: DeviceFamily, memory: float) -> float:
    """Up to the next template; beyond the largest, a whole card."""
    for template in family.templates:
        if template.memory >= memory:
            return template.memory
    return family.memory_allocatable if memory <= family.memory_capacity else memory


def _of_pod(family: DeviceFamily, pod: Pod) -> CardDemand:
    name = family.count if family.whole_cards else family.memory
    spec = pod.spec
    asked = max(_limit(spec.containers, name), *(_limit([c], name) for c in spec.init_containers), 0)
    if not asked:
        return NOTHING
    if not family.whole_cards:
        return CardDemand((Portion(1, float(asked)),))
    in_ring = family.domains is DomainRule.RING and asked <= family.ring_size
    return CardDemand((Portion(min(asked, MAX_CARDS_OF_A_POD), alone=True, one_domain=in_ring),))


def _of_chip_cores(family: DeviceFamily, pod: Pod) -> CardDemand:
    """A template of one chip, or whole chips: how many these are depends on the cores of a node's chips."""
    labels = pod.labels
    cores = _limit(pod.spec.containers, family.count)
    if not cores or labels.get(NPU_LABEL) != NPU_CHIP:
        return NOTHING
    level, decoder = labels.get(LEVEL_LABEL, "low"), labels.get(DECODER_LABEL, "null")
    if decoder not in ("null", "yes", "no"):
        problem = f"label {DECODER_LABEL} is none of yes, no, null: {decoder[:32]!r}"
        return CardDemand((Portion(1, template="vir01"),), problem=problem)
    template = chip_template(cores, level, decoder)
    if not template:
        return CardDemand((Portion(1, alone=True, of_whole_cards=float(cores)),))
    second = DOWNGRADED.get(template)
    asked = Portion(1, template=template)
    return CardDemand((asked,), (Portion(1, template=second),) if second else ())


def chip_template(cores: int, level: str, decoder: str) -> str:
    """The template for so many cores; none for whole chips."""
    high = level == "high"
    if cores == 1:
        return "vir01"
    if cores == 2:
        return "vir02" if high else "vir02_1c"
    if cores == 4:
        return {"yes": "vir04_4c_dvpp", "no": "vir04_3c_ndvpp"}.get(decoder, "vir04" if high else "vir04_3c")
    return ""


def _limit(containers: Iterable[Container], name: str) -> int:
    return sum(_whole((container.resources.limits or {}).get(name)) for container in containers)


def _whole(text: str | int | float | None) -> int:
    try:
        return max(parse_quantity(text).value, 0) if text is not None else 0
    except QuantityError:
        return 0


FORMS: Final[Mapping[DemandForm, Callable[[DeviceFamily, Pod], CardDemand]]] = {
    DemandForm.CONTAINERS: _of_containers,
    DemandForm.POD: _of_pod,
    DemandForm.CHIP_CORES: _of_chip_cores,
}
