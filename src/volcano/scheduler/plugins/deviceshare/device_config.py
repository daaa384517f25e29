"""The device configuration (device-config.yaml of volcano-vgpu and HAMi): which families there are, with its names.

It is the same text as the device plugins read. What it does not name stays as it is known here (api.device_families).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from volcano.api.bounded_yaml import load_yaml
from volcano.api.device_families import (
    ASCEND,
    VENDORS,
    VGPU,
    CardTemplate,
    DeviceFamily,
    MigGeometry,
    MigGroup,
    MigInstance,
    ascend_family,
)

MAX_CONFIG_CHARACTERS: Final = 1024 * 1024
MAX_GEOMETRIES: Final = 256
MAX_GROUPS: Final = 64
MAX_INSTANCES_OF_A_CARD: Final = 64
MAX_CHIPS: Final = 64
MAX_TEMPLATES: Final = 64
NAMES: Final = {
    "count": ("resourceCountName", "resourceVCountName", "resourceNameDRSGCU"),
    "memory": ("resourceMemoryName", "resourceVMemoryName", "resourceNameGCUMemory"),
    "percentage": ("resourceMemoryPercentageName",),
    "cores": ("resourceCoreName", "resourceVCoreName", "resourceNameGCUCore"),
}
"""Fields of a vendor's section that rename its resources; where there are several, the later wins."""


class InvalidDeviceConfig(ValueError):
    """The message names the field and says why."""


@dataclass(slots=True, frozen=True)
class DeviceConfig:
    vgpu: DeviceFamily = VGPU
    vendors: tuple[DeviceFamily, ...] = tuple(VENDORS.values())
    ascend: tuple[DeviceFamily, ...] = ASCEND


@lru_cache(maxsize=16)
def device_config(text: str) -> DeviceConfig:
    if len(text) > MAX_CONFIG_CHARACTERS:
        raise InvalidDeviceConfig(f"longer than {MAX_CONFIG_CHARACTERS} characters")
    try:
        read = load_yaml(text)
    except ValueError as error:
        raise InvalidDeviceConfig(str(error)) from error
    sections = _map(read or {}, "")
    nvidia = _map(sections.get("nvidia") or {}, "nvidia")
    return DeviceConfig(
        _vgpu(nvidia),
        tuple(_renamed(family, _map(sections.get(name) or {}, name)) for name, family in VENDORS.items()),
        tuple(_ascend(sections.get("vnpus"))) or ASCEND,
    )


def _vgpu(section: Mapping[str, Any]) -> DeviceFamily:
    """Of volcano-vgpu: only names of its own domain are taken over, so that HAMi's defaults do not change it."""
    named = {
        key: value
        for key, value in section.items()
        if not key.startswith("resource") or str(value).startswith("volcano.sh/")
    }
    family = _renamed(VGPU, named)
    factor = section.get("gpuMemoryFactor", 1)
    geometries = tuple(_geometries(section.get("knownMigGeometries") or (), "nvidia.knownMigGeometries"))
    needs = tuple(name for name in (family.count, family.memory, family.cores) if name)
    return replace(
        family,
        needs=needs,
        memory_factor=int(_number(factor, "nvidia.gpuMemoryFactor")) or 1,
        geometries=geometries or VGPU.geometries,
    )


def _renamed(family: DeviceFamily, section: Mapping[str, Any]) -> DeviceFamily:
    changes: dict[str, Any] = {}
    for field, names in NAMES.items():
        stated = [section[name] for name in names if section.get(name)]
        if stated and isinstance(stated[-1], str):
            changes[field] = stated[-1]
    if not changes:
        return family
    renamed = replace(family, **changes)
    return replace(renamed, needs=tuple(renamed.count if name == family.count else name for name in family.needs))


def _geometries(stated: Any, path: str) -> Iterable[MigGeometry]:
    for place, each in enumerate(_list(stated, path, MAX_GEOMETRIES)):
        of, here = _map(each, f"{path}[{place}]"), f"{path}[{place}]"
        models = tuple(str(model) for model in _list(of.get("models") or (), f"{here}.models", MAX_GEOMETRIES))
        groups = [
            _group(group, f"{here}.allowedGeometries[{number}]", number)
            for number, group in enumerate(
                _list(of.get("allowedGeometries") or (), f"{here}.allowedGeometries", MAX_GROUPS)
            )
        ]
        yield MigGeometry(models, tuple(groups))


def _group(stated: Any, path: str, number: int) -> MigGroup:
    """`{group: name, geometries: [instance …]}`, or the instances alone."""
    of = stated if isinstance(stated, Mapping) else {"geometries": stated}
    name = str(of.get("group", number))
    if "-" in name:
        raise InvalidDeviceConfig(f"{path}.group: {name!r} contains a hyphen")
    instances = []
    for place, each in enumerate(_list(of.get("geometries") or (), f"{path}.geometries", MAX_INSTANCES_OF_A_CARD)):
        here = f"{path}.geometries[{place}]"
        kind = _map(each, here)
        count = int(_number(kind.get("count", 1), f"{here}.count"))
        instances.append(MigInstance(str(kind.get("name", "")), _number(kind.get("memory"), f"{here}.memory"), count))
    if sum(instance.count for instance in instances) > MAX_INSTANCES_OF_A_CARD:
        raise InvalidDeviceConfig(f"{path}: more than {MAX_INSTANCES_OF_A_CARD} instances on a card")
    return MigGroup(name, tuple(instances))


def _ascend(stated: Any) -> Iterable[DeviceFamily]:
    of = stated if isinstance(stated, Mapping) else {"configs": stated}
    soft = bool(of.get("hamiVnpuCore", False))
    for place, each in enumerate(_list(of.get("configs") or (), "vnpus", MAX_CHIPS)):
        path = f"vnpus[{place}]"
        chip = _map(each, path)
        word = str(chip.get("commonWord") or "")
        if not word:
            raise InvalidDeviceConfig(f"{path}.commonWord: is not stated")
        templates = [
            _template(template, f"{path}.templates[{number}]")
            for number, template in enumerate(_list(chip.get("templates") or (), f"{path}.templates", MAX_TEMPLATES))
        ]
        allocatable = _number(chip.get("memoryAllocatable", 0), f"{path}.memoryAllocatable")
        yield ascend_family(
            word,
            allocatable,
            _number(chip.get("memoryCapacity", allocatable), f"{path}.memoryCapacity"),
            tuple(templates),
            resource=str(chip.get("resourceName") or ""),
            memory=str(chip.get("resourceMemoryName") or ""),
            cores=str(chip.get("resourceCoreName") or ""),
            offers_soft_shares=soft,
        )


def _template(stated: Any, path: str) -> CardTemplate:
    of = _map(stated, path)
    return CardTemplate(str(of.get("name", "")), _number(of.get("memory"), f"{path}.memory"))


def _map(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidDeviceConfig(f"{path or 'the text'}: is no map")
    return value


def _list(value: Any, path: str, most: int) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise InvalidDeviceConfig(f"{path}: is no list")
    if len(value) > most:
        raise InvalidDeviceConfig(f"{path}: has more than {most} entries")
    return list(value)


def _number(value: Any, path: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        raise InvalidDeviceConfig(f"{path}: is no number from 0: {str(value)[:32]!r}")
    return float(value)
