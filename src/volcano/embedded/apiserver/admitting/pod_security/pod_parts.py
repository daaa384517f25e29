"""What the checks of Pod Security read from a pod, and how they word what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from volcano.api.meta import JSON


class Violation(NamedTuple):
    """What a level does not allow: the rule in short, and which parts of the pod break it."""

    reason: str
    detail: str

    def __str__(self) -> str:
        return f"{self.reason} ({self.detail})" if self.detail else self.reason


class PodParts(NamedTuple):
    """A pod or the template of one."""

    annotations: Mapping[str, str]
    spec: JSON

    @property
    def security(self) -> JSON:
        return part(self.spec, "securityContext")

    @property
    def is_windows(self) -> bool:
        return part(self.spec, "os").get("name") == "windows"

    def containers(self) -> Iterator[JSON]:
        for field in ("initContainers", "containers", "ephemeralContainers"):
            for container in self.spec.get(field) or ():
                if isinstance(container, dict):
                    yield container

    def containers_that(self, breaks: Callable[[JSON], bool]) -> list[str]:
        """The names of containers whose security context breaks a rule."""
        return [str(each.get("name", "")) for each in self.containers() if breaks(part(each, "securityContext"))]

    def setters(self, breaks: Callable[[JSON], bool]) -> str:
        """Who breaks a rule: the pod's security context, containers', or both; empty if none does."""
        names = self.containers_that(breaks)
        return " and ".join((*(("pod",) if breaks(self.security) else ()), *((counted(names),) if names else ())))


def part(owner: JSON, name: str) -> JSON:
    """A part that is an object; empty where it is not set."""
    found: Any = owner.get(name)
    return found if isinstance(found, dict) else {}


def counted(names: list[str], one: str = "container", more: str = "") -> str:
    """`container "a"` or `containers "a", "b"`."""
    return f"{plural(len(names), one, more)} {quoted(names)}"


def plural(count: int, one: str, more: str = "") -> str:
    return one if count == 1 else more or one + "s"


def quoted(values: Iterable[object]) -> str:
    return ", ".join(f'"{value}"' for value in values)
