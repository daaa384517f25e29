"""What a pod requests and limits: the only place that adds up containers, init containers, sidecars and overhead.

The scheduler, quota, LimitRanger and the PodGroup controllers all call this rule, which is Kubernetes' own: containers
run together, init containers one after the other, sidecars (init containers with restartPolicy Always) beside all that
start after them. Amounts that the pod as a whole declares replace the sum; overhead comes on top.

Requests and limits are read as they are stored. The API server has copied limits into missing requests by then; a
template that has not passed the server may state limits only, and requests nothing. Amounts in `status` (in-place
resize) are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeAlias

from volcano.api.core import ResourceRequirements
from volcano.api.decode import Unreadable, decode_object
from volcano.api.meta import Model, Quantities, Resource
from volcano.api.pods.amounts import Amounts, added, amounts_of, larger
from volcano.api.quantity import Quantity

Part: TypeAlias = Literal["requests", "limits"]
Parser: TypeAlias = Callable[[Quantities | None], Amounts]

SIDECAR_RESTART_POLICY: Final = "Always"
NOTHING: Final[Mapping[str, Quantity]] = MappingProxyType({})


class ContainerResources(Protocol):
    """A container as far as its size matters."""

    @property
    def name(self) -> str: ...
    @property
    def resources(self) -> ResourceRequirements: ...
    @property
    def restart_policy(self) -> str: ...


class PodResources(Protocol):
    """A pod spec as far as its size matters."""

    @property
    def containers(self) -> Sequence[ContainerResources]: ...
    @property
    def init_containers(self) -> Sequence[ContainerResources]: ...
    @property
    def overhead(self) -> Quantities | None: ...
    @property
    def resources(self) -> ResourceRequirements | None: ...


class SizedContainer(Model, frozen=True):
    """The part of a container that `read_resources` decodes."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    restart_policy: str = ""


class SizedSpec(Model, frozen=True):
    """The part of a pod spec that `read_resources` decodes."""

    containers: list[SizedContainer] = []
    init_containers: list[SizedContainer] = []
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None


class _SizedPod(Resource, frozen=True):
    spec: SizedSpec = SizedSpec()


def read_resources(spec: Any) -> SizedSpec:
    """The sizes in a pod spec that is plain JSON; a spec that cannot be read requests nothing."""
    try:
        return decode_object(_SizedPod, {"spec": spec}).spec
    except Unreadable:
        return SizedSpec()


def pod_requests(
    spec: PodResources, *, parse: Parser = amounts_of, assumed: Mapping[str, Quantity] = NOTHING
) -> Amounts:
    """The amounts that a pod needs of a node.

    `assumed` counts for each container that does not request that resource, as Kubernetes' scoring does. `parse` is
    `amounts.parsed` for callers that set a pod with a malformed quantity aside.
    """
    return added(_declared(spec, "requests", parse, assumed), parse(spec.overhead))


def pod_limits(spec: PodResources, *, parse: Parser = amounts_of) -> Amounts:
    """The amounts that a pod may use at most. Overhead counts where there is a limit; without one there is no bound."""
    limits, overhead = _declared(spec, "limits", parse, NOTHING), parse(spec.overhead)
    return added(limits, {name: amount for name, amount in overhead.items() if name in limits})


def has_pod_level_resources(spec: PodResources) -> bool:
    """Whether the pod as a whole states a request or limit of a resource that a pod as a whole may state."""
    if spec.resources is None:
        return False
    return any(is_pod_level(name) for name in (*(spec.resources.requests or {}), *(spec.resources.limits or {})))


def is_pod_level(name: str) -> bool:
    """Resources of which a pod as a whole can have an amount; others belong to containers."""
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def is_sidecar(container: ContainerResources) -> bool:
    """Whether an init container keeps running beside the containers."""
    return container.restart_policy == SIDECAR_RESTART_POLICY


def _declared(spec: PodResources, part: Part, parse: Parser, assumed: Mapping[str, Quantity]) -> Amounts:
    total = containers_together(spec, part, parse=parse, assumed=assumed)
    if spec.resources is not None:
        total |= {name: amount for name, amount in _of(spec.resources, part, parse).items() if is_pod_level(name)}
    return total


def containers_together(
    spec: PodResources, part: Part, *, parse: Parser = amounts_of, assumed: Mapping[str, Quantity] = NOTHING
) -> Amounts:
    """What the containers state, without what the pod as a whole states and without overhead."""
    total = added(*({**assumed, **_of(each.resources, part, parse)} for each in spec.containers))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        own = {**assumed, **_of(container.resources, part, parse)}
        if is_sidecar(container):
            sidecars = added(sidecars, own)
            peak = larger(peak, sidecars)
        else:
            peak = larger(peak, added(sidecars, own))
    return larger(added(total, sidecars), peak)


def _of(resources: ResourceRequirements, part: Part, parse: Parser) -> Amounts:
    return parse(resources.requests if part == "requests" else resources.limits)
