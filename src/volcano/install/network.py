"""What surrounds the Deployments: Services, NetworkPolicies, PodDisruptionBudgets, ServiceMonitors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from volcano.api.meta import JSON
from volcano.install.rbac import APART, TOGETHER, WITH_DASHBOARD, WITH_HISTORY, WITH_WEBHOOK
from volcano.install.values import Part, Values
from volcano.install.workloads import (
    CONTROLLER_METRICS_PORT,
    DASHBOARD_PORT,
    HISTORY_PORT,
    SCHEDULER_METRICS_PORT,
    SERVICE,
    WEBHOOK_PORT,
    labels,
)

NAMES: Final[Mapping[str, str]] = {
    "scheduler": APART,
    "controllers": APART,
    "manager": TOGETHER,
    "admission": WITH_WEBHOOK,
    "history": WITH_HISTORY,
    "dashboard": WITH_DASHBOARD,
}
"""The components, and when they are there."""
DNS: Final = {"ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}]}
API_SERVER: Final = {"ports": [{"protocol": "TCP", "port": 443}, {"protocol": "TCP", "port": 6443}]}


def network_parts(values: Values) -> Iterator[Part]:
    for name, port in (("scheduler", SCHEDULER_METRICS_PORT), ("controllers", CONTROLLER_METRICS_PORT)):
        service = _service(f"volcano-{name}-service", name, values, port)
        yield Part(name, service, APART)
        yield Part(name, _to_manager(service, "metrics" if name == "scheduler" else name), TOGETHER)
    yield Part("admission", _service(SERVICE, "admission", values, 443, name_of_port="webhook"), WITH_WEBHOOK)
    yield Part("history", _service("volcano-history", "history", values, HISTORY_PORT), WITH_HISTORY)
    page = _service("volcano-dashboard", "dashboard", values, DASHBOARD_PORT, name_of_port="health")
    yield Part("dashboard", page, WITH_DASHBOARD)
    for name, mode in NAMES.items():
        yield Part("network-policies", _network_policy(name, values), _both("networkPolicies.enabled", mode))
        if name != "dashboard":  # of which one process is usual: a budget would keep its node from being drained
            yield Part("disruption-budgets", _budget(name, values), _both("podDisruptionBudgets.enabled", mode))
    yield Part("network-policies", _init_policy(values), _both("networkPolicies.enabled", WITH_WEBHOOK))
    for name in ("scheduler", "controllers"):
        yield Part("service-monitors", _monitor(name, values), "metrics.serviceMonitor.enabled")
    monitored = _both("metrics.serviceMonitor.enabled", WITH_HISTORY)
    yield Part("service-monitors", _monitor("history", values), monitored)


def _both(one: str, other: str) -> str:
    return f"{one}&{other}" if other else one


def _service(name: str, component: str, values: Values, port: int, *, name_of_port: str = "metrics") -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": values.namespace, "labels": labels(component)},
        "spec": {
            "type": "ClusterIP",
            "selector": {"app": f"volcano-{component}"},
            "ports": [{"name": name_of_port, "protocol": "TCP", "port": port, "targetPort": name_of_port}],
        },
    }


def _to_manager(service: JSON, name_of_port: str) -> JSON:
    """The same Service, answered by the process that is both scheduler and controllers."""
    [port] = service["spec"]["ports"]
    return {
        **service,
        "spec": {
            **service["spec"],
            "selector": {"app": "volcano-manager"},
            "ports": [{**port, "targetPort": name_of_port}],
        },
    }


def _network_policy(name: str, values: Values) -> JSON:
    incoming = {
        "scheduler": [SCHEDULER_METRICS_PORT],
        "controllers": [CONTROLLER_METRICS_PORT],
        "manager": [SCHEDULER_METRICS_PORT, CONTROLLER_METRICS_PORT],
        "admission": [WEBHOOK_PORT],
        "history": [HISTORY_PORT],
        "dashboard": [DASHBOARD_PORT],
    }[name]
    outgoing: list[Any] = [DNS, API_SERVER]
    if name in ("controllers", "manager"):
        outgoing = [{}]  # a JobFlow's probes go to pods, at whichever port they name
    if name == "history":
        outgoing += values.extra("history.egress")
    if name == "scheduler":
        outgoing += values.extra("networkPolicies.schedulerEgress")
    return _policy(f"volcano-{name}", name, values, incoming=incoming, outgoing=outgoing)


def _init_policy(values: Values) -> JSON:
    return _policy("volcano-admission-init", "admission-init", values, incoming=[], outgoing=[DNS, API_SERVER])


def _policy(name: str, component: str, values: Values, *, incoming: list[int], outgoing: list[Any]) -> JSON:
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": values.namespace, "labels": labels(component)},
        "spec": {
            "podSelector": {"matchLabels": {"app": f"volcano-{component}"}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": [{"protocol": "TCP", "port": port}]} for port in incoming],
            "egress": outgoing,
        },
    }


def _budget(name: str, values: Values) -> JSON:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"volcano-{name}", "namespace": values.namespace, "labels": labels(name)},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": f"volcano-{name}"}}},
    }


def _monitor(name: str, values: Values) -> JSON:
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {
            "name": f"volcano-{name}",
            "namespace": values.namespace,
            "labels": values("metrics.serviceMonitor.labels"),
        },
        "spec": {
            "selector": {"matchLabels": labels(name)},
            "endpoints": [{"port": "metrics", "interval": values("metrics.serviceMonitor.interval")}],
        },
    }
