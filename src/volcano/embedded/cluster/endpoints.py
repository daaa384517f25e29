"""Endpoints and EndpointSlices: the addresses of the pods that each Service selects."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, ClassVar, Final

from volcano.api.core import Endpoints, EndpointSlice, Pod, Service, ServicePort
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheme import resource_type
from volcano.api.selectors import labels_selector
from volcano.api.service_network import HEADLESS, SERVICE_NAME_LABEL
from volcano.embedded.cluster.matching import ALL_SELECTORS, is_ready, on_pod_change, requeue_matching
from volcano.machinery.controller import Controller, Waker, self_key
from volcano.machinery.plan import NOTHING, Create, Delete, Patch, Plan, Step, owner_reference, ref
from volcano.machinery.world import World

MAX_ENDPOINTS_PER_SLICE: Final = 100
MAX_ADDRESSES_PER_SUBSET: Final = 1000
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = "endpointslice-controller.k8s.io"

Ports = tuple[tuple[str, int, str], ...]  # name, number, protocol


class EndpointsController(Controller):
    """Reconciles Endpoints and EndpointSlices with the pods that a Service selects."""

    name: ClassVar = "endpoints"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Service: self_key, Pod: on_pod_change(_address)}

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (Endpoints, EndpointSlice)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key.name == ALL_SELECTORS:
            services = world.where(Service, "namespace", key.namespace)
            return requeue_matching(
                ((s, labels_selector(s.spec.selector)) for s in services if s.spec.selector), causes
            )
        service = world.get(Service, key)
        if service is None or service.is_deleting or not service.spec.selector:
            return NOTHING
        if service.spec.type == "ExternalName":
            return NOTHING
        selector = labels_selector(service.spec.selector)
        pods = [
            p for p in world.where(Pod, "namespace", key.namespace) if selector.matches(p.labels) and _has_address(p)
        ]
        return (*_endpoints(service, pods, world), *_slices(service, pods, world))


def _address(pod: Pod) -> tuple[Any, ...]:
    """The part of a pod that an endpoint shows."""
    return (pod.labels, pod.status.pod_ip, pod.is_finished, is_ready(pod), pod.is_deleting, pod.spec.node_name)


def _has_address(pod: Pod) -> bool:
    return bool(pod.status.pod_ip) and not pod.is_finished


def _ports(service: Service, pod: Pod) -> Ports:
    """The container port behind each service port; a named port that no container has is left out."""
    found = ((port.name, _target(port, pod), port.protocol) for port in service.spec.ports)
    return tuple((name, number, protocol) for name, number, protocol in found if number)


def _target(port: ServicePort, pod: Pod) -> int:
    target = port.target_port
    if isinstance(target, str) and not target.isdecimal():
        named = (p for container in pod.spec.containers for p in container.ports if p.name == target)
        return next((p.container_port for p in named if p.protocol == port.protocol), 0)
    return int(target) if target else port.port


def _wire(ports: Ports) -> list[JSON]:
    return [{**({"name": name} if name else {}), "port": number, "protocol": kind} for name, number, kind in ports]


def _by_ports(service: Service, pods: Iterable[Pod]) -> dict[Ports, list[Pod]]:
    groups: dict[Ports, list[Pod]] = {}
    for pod in pods:
        ports = _ports(service, pod)
        if ports or not service.spec.ports:
            groups.setdefault(ports, []).append(pod)
    return dict(sorted(groups.items()))


# -- Endpoints ------------------------------------------------------------------------------------------------
def _endpoints(service: Service, pods: list[Pod], world: World) -> Iterable[Step]:
    publishes_all = service.spec.publish_not_ready_addresses
    subsets: list[JSON] = []
    for ports, members in _by_ports(service, [pod for pod in pods if not pod.is_deleting or publishes_all]).items():
        members = members[:MAX_ADDRESSES_PER_SUBSET]
        ready = [_endpoint_address(pod, service) for pod in members if is_ready(pod) or publishes_all]
        waiting = [_endpoint_address(pod, service) for pod in members if not (is_ready(pod) or publishes_all)]
        subset: JSON = {"addresses": ready} if ready else {}
        if waiting:
            subset["notReadyAddresses"] = waiting
        if ports:
            subset["ports"] = _wire(ports)
        subsets.append(subset)
    have = world.get(Endpoints, service.key)
    if have is None:
        metadata: JSON = {"name": service.name, "namespace": service.namespace, "labels": service.labels}
        yield Create(resource_type(Endpoints), {"metadata": metadata, "subsets": subsets})
    elif have.subsets != subsets:
        yield Patch(ref(have), {"subsets": subsets})


def _endpoint_address(pod: Pod, service: Service) -> JSON:
    address: JSON = {"ip": pod.status.pod_ip, "nodeName": pod.spec.node_name, "targetRef": _target_ref(pod)}
    if pod.spec.hostname and pod.spec.subdomain == service.name:
        address["hostname"] = pod.spec.hostname
    return address


def _target_ref(pod: Pod) -> JSON:
    return {"kind": "Pod", "namespace": pod.namespace, "name": pod.name, "uid": pod.uid}


# -- EndpointSlices -------------------------------------------------------------------------------------------
def _slices(service: Service, pods: list[Pod], world: World) -> Iterable[Step]:
    wanted = _wanted_slices(service, pods)
    known = world.where(EndpointSlice, "owner", service.uid)
    mine = {each.name: each for each in known if each.labels.get(MANAGED_BY) == MANAGER}
    for name, body in wanted.items():
        have = mine.pop(name, None)
        if have is None:
            yield Create(resource_type(EndpointSlice), body)
        elif have.endpoints != body["endpoints"] or have.ports != body["ports"]:
            yield Patch(ref(have), {"endpoints": body["endpoints"], "ports": body["ports"]})
    yield from (Delete(ref(each)) for each in mine.values())


def _wanted_slices(service: Service, pods: list[Pod]) -> dict[str, JSON]:
    """At least one, of at most a hundred endpoints with the same ports and the same kind of address."""
    wanted: dict[str, JSON] = {}
    groups = [(ports, members) for ports, members in _by_ports(service, pods).items()] or [((), [])]
    for ports, members in groups:
        families = {kind: [p for p in members if _family(p) == kind] for kind in ("IPv4", "IPv6")}
        for kind, some in families.items():
            if not some and (kind == "IPv6" or members):
                continue
            for start in range(0, max(len(some), 1), MAX_ENDPOINTS_PER_SLICE):
                name = _slice_name(service, len(wanted))
                chunk = some[start : start + MAX_ENDPOINTS_PER_SLICE]
                wanted[name] = _slice(service, name, kind, ports=ports, pods=chunk)
    return wanted


def _slice(service: Service, name: str, kind: str, *, ports: Ports, pods: list[Pod]) -> JSON:
    labels = {**service.labels, SERVICE_NAME_LABEL: service.name, MANAGED_BY: MANAGER}
    if service.spec.cluster_ip == HEADLESS:
        labels["service.kubernetes.io/headless"] = ""
    return {
        "metadata": {
            "name": name,
            "namespace": service.namespace,
            "labels": labels,
            "ownerReferences": [owner_reference(service)],
        },
        "addressType": kind,
        "ports": _wire(ports),
        "endpoints": [_slice_endpoint(pod, service) for pod in pods],
    }


def _slice_endpoint(pod: Pod, service: Service) -> JSON:
    ready = is_ready(pod)
    endpoint: JSON = {
        "addresses": [pod.status.pod_ip],
        "conditions": {
            "ready": (ready and not pod.is_deleting) or service.spec.publish_not_ready_addresses,
            "serving": ready,
            "terminating": pod.is_deleting,
        },
        "targetRef": _target_ref(pod),
    }
    if pod.spec.node_name:
        endpoint["nodeName"] = pod.spec.node_name
    if pod.spec.hostname and pod.spec.subdomain == service.name:
        endpoint["hostname"] = pod.spec.hostname
    return endpoint


def _family(pod: Pod) -> str:
    return "IPv6" if ":" in pod.status.pod_ip else "IPv4"


def _slice_name(service: Service, index: int) -> str:
    digest = hashlib.sha256(f"{service.uid}/{index}".encode()).hexdigest()[:5]
    return f"{service.name}-{digest}"
