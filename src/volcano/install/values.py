"""The values of an installation: what can be chosen, what it means, and its default.

The same builders make plain manifests and the Helm chart: for the chart a value reads as a placeholder, which
install.chart turns into a template expression.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from volcano import __version__
from volcano.api.bounded_yaml import load_yaml
from volcano.api.meta import JSON
from volcano.scheduler.service.shipped_configuration import DEFAULT_CONFIGURATION

NAMESPACE: Final = "volcano-system"
PLACEHOLDER: Final = re.compile(r"__(VALUES|RELEASE)\.([A-Za-z.]+)__")
EXTENSION: Final = re.compile(r"^( *)- __EXTRA\.([A-Za-z.]+)__\n", re.M)


class Value(msgspec.Struct, frozen=True):
    """One value: its path in values.yaml, its default, and a sentence about it."""

    path: str
    default: Any
    meaning: str


def _component(name: str, *, cpu: str, memory: str, limit: str, replicas: str = "") -> tuple[Value, ...]:
    return (
        Value(f"{name}.replicas", 2, replicas or "Processes; one leads, the others wait to take over."),
        Value(
            f"{name}.resources",
            {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": limit}},
            "Requests and limits of each process.",
        ),
        Value(f"{name}.extraArgs", [], "Further flags; the last mention of a flag wins."),
        Value(f"{name}.nodeSelector", {}, "Labels of the nodes to run on."),
        Value(f"{name}.tolerations", [], "Taints to tolerate."),
        Value(f"{name}.affinity", {}, "Affinity rules."),
        Value(f"{name}.priorityClassName", "system-cluster-critical", "PriorityClass of the pods."),
    )


VALUES: Final[tuple[Value, ...]] = (
    Value("image.repository", "volcano", "The image; one for all components (deploy/Dockerfile)."),
    Value("image.tag", __version__, "Its tag."),
    Value("image.pullPolicy", "IfNotPresent", "When it is pulled: Always, IfNotPresent or Never."),
    Value("image.pullSecrets", [], "Secrets to pull with: [{name: …}]."),
    Value("schedulerName", "volcano", "The schedulerName whose pods and jobs are looked after."),
    Value("logLevel", 0, "Verbosity of the logs; 4 and more is for debugging."),
    *_component("scheduler", cpu="500m", memory="512Mi", limit="4Gi"),
    Value(
        "scheduler.config", DEFAULT_CONFIGURATION, "volcano-scheduler.conf; taken up without a restart when it changes."
    ),
    *_component("controllers", cpu="250m", memory="256Mi", limit="2Gi"),
    Value("manager.enabled", False, "Whether scheduler and controllers are one process, with one set of watches."),
    *_component("manager", cpu="500m", memory="768Mi", limit="6Gi"),
    Value("controllers.sharding", False, "Whether the sharding controller runs, with the rights it needs."),
    Value("admission.mode", "webhook", "How jobs and queues are checked: webhook, policies (no process) or none."),
    *_component("admission", cpu="100m", memory="128Mi", limit="512Mi", replicas="Processes; all answer."),
    Value("admission.failurePolicy", "Fail", "What happens while no webhook answers: Fail (refuse) or Ignore."),
    Value("history.enabled", False, "Whether what happens to jobs is recorded, and kept after they are gone."),
    *_component("history", cpu="100m", memory="128Mi", limit="1Gi", replicas="Processes; one records, all answer."),
    Value("history.databaseSecret", "volcano-history", "Secret whose key `url` is the database: postgresql://…."),
    Value("history.retention", "2160h", "How long ended jobs are kept."),
    Value("history.size", "10Gi", "How much room the history may take in its database."),
    Value("history.egress", [], "Further egress rules of the history: to its database."),
    Value("dashboard.enabled", False, "Whether the dashboard is served; people sign in with their own tokens."),
    Value("dashboard.replicas", 1, "Processes; who is signed in is known to one of them only."),
    *_component("dashboard", cpu="50m", memory="128Mi", limit="1Gi")[1:],
    Value("networkPolicies.enabled", True, "Whether traffic of the components is limited to what they need."),
    Value("networkPolicies.schedulerEgress", [], "Further egress rules of the scheduler (a Prometheus, for usage)."),
    Value("podDisruptionBudgets.enabled", True, "Whether drains leave one process of each component."),
    Value("metrics.serviceMonitor.enabled", False, "Whether ServiceMonitors of the Prometheus operator are made."),
    Value("metrics.serviceMonitor.interval", "30s", "How often metrics are read."),
    Value("metrics.serviceMonitor.labels", {}, "Labels by which a Prometheus finds the ServiceMonitors."),
    Value("metrics.prometheusRule.enabled", False, "Whether a PrometheusRule with recordings and alerts is made."),
    Value("metrics.prometheusRule.labels", {}, "Labels by which a Prometheus finds the rules."),
    Value("metrics.grafanaDashboard.enabled", False, "Whether a ConfigMap with the dashboard is made for Grafana."),
    Value("roles.enabled", True, "Whether ClusterRoles for users are made (vcjob-editor-role, vcjob-viewer-role)."),
)  # fmt: skip


class UnknownValue(ValueError):
    """A value was set that does not exist."""


class Values:
    """Chosen values, by path."""

    def __init__(self, chosen: Mapping[str, Any] | None = None, *, namespace: str = NAMESPACE) -> None:
        self._values = {value.path: copy.deepcopy(value.default) for value in VALUES}
        for path, value in (chosen or {}).items():
            if path not in self._values:
                raise UnknownValue(f"there is no value {path!r}; known: {', '.join(self._values)}")
            self._values[path] = value
        self.namespace = namespace
        self.revision = ""  # a suffix that differs from upgrade to upgrade

    def __call__(self, path: str) -> Any:
        return copy.deepcopy(self._values[path])

    def extra(self, path: str) -> list[Any]:
        """Items to end a list with."""
        return list(self._values[path])

    def holds(self, condition: str) -> bool:
        """Whether a Part's condition holds: paths and `path=value`, joined by `&`."""
        return all(self._holds(each) for each in condition.split("&"))

    def _holds(self, condition: str) -> bool:
        path, equals, wanted = condition.partition("=")
        value = self._values[path]
        return (str(value).lower() == wanted) if equals else bool(value)


class Placeholders(Values):
    """Values for the chart: each is a placeholder for itself."""

    def __init__(self) -> None:
        super().__init__(namespace="__RELEASE.Namespace__")
        self.revision = "-__RELEASE.Revision__"

    def __call__(self, path: str) -> Any:
        if path not in self._values:
            raise UnknownValue(path)
        return f"__VALUES.{path}__"

    def extra(self, path: str) -> list[Any]:
        if path not in self._values:
            raise UnknownValue(path)
        return [f"__EXTRA.{path}__"]


class Part(msgspec.Struct, frozen=True):
    """One object of an installation, the file of the chart it belongs to, and when it is there."""

    file: str
    body: JSON
    condition: str = ""


def chosen_parts(parts: Iterator[Part], values: Values) -> list[JSON]:
    return [part.body for part in parts if not part.condition or values.holds(part.condition)]


def parse_assignment(text: str) -> tuple[str, Any]:
    """`path=value` as on the command line; the value is YAML."""
    path, equals, value = text.partition("=")
    if not equals:
        raise UnknownValue(f"{text!r} is not path=value")
    return path, load_yaml(value)
