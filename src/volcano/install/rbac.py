"""RBAC: the rights of each component, no more than it uses, and roles for users.

The tables are the reference; the tests run every component with exactly these rights on a real API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from volcano.admission.chain import WEBHOOKS
from volcano.admission.webhook.registration import configuration_name
from volcano.api.meta import JSON
from volcano.install.values import Part, Values

GROUP: Final = "rbac.authorization.k8s.io"
FOLLOW: Final = "list watch"

Rules = tuple[tuple[str, str, str], ...]
"""Group, resources, verbs; each a list separated by blanks."""

SCHEDULER: Final[Rules] = (
    ("", "pods", f"{FOLLOW} patch delete"),
    ("", "pods/status", "patch"),
    ("", "pods/binding", "create"),
    ("", "events", "create patch list"),
    ("", "nodes namespaces services replicationcontrollers resourcequotas", FOLLOW),
    ("", "nodes", "patch"),  # locks that device plugins need
    ("", "persistentvolumeclaims persistentvolumes", f"{FOLLOW} patch"),
    ("apps", "replicasets statefulsets", FOLLOW),
    ("storage.k8s.io", "storageclasses csinodes", FOLLOW),
    ("policy", "poddisruptionbudgets", FOLLOW),
    ("scheduling.k8s.io", "priorityclasses", FOLLOW),
    ("resource.k8s.io", "resourceclaims deviceclasses resourceslices", FOLLOW),
    ("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaims/binding", "patch"),
    ("batch.volcano.sh", "jobs", "get"),
    ("scheduling.volcano.sh", "queues", f"{FOLLOW} create"),
    ("scheduling.volcano.sh", "queues/status", "patch"),
    ("scheduling.volcano.sh", "podgroups", f"{FOLLOW} patch"),
    ("nodeinfo.volcano.sh", "numatopologies", FOLLOW),
    ("topology.volcano.sh", "hypernodes", FOLLOW),
    ("shard.volcano.sh", "nodeshards", FOLLOW),
    ("shard.volcano.sh", "nodeshards/status", "patch"),
    ("reservation.volcano.sh", "reservations", FOLLOW),
    ("reservation.volcano.sh", "reservations/status", "patch"),
)
CONTROLLERS: Final[Rules] = (
    ("batch.volcano.sh", "jobs", f"get {FOLLOW} create patch delete"),
    ("batch.volcano.sh", "cronjobs", FOLLOW),
    ("batch.volcano.sh", "jobs/status cronjobs/status", "patch"),
    ("batch.volcano.sh", "jobs/finalizers cronjobs/finalizers", "update"),
    ("bus.volcano.sh", "commands", f"{FOLLOW} delete"),
    ("flow.volcano.sh", "jobflows jobtemplates", FOLLOW),
    ("flow.volcano.sh", "jobflows/status jobtemplates/status", "patch"),
    ("flow.volcano.sh", "jobflows/finalizers", "update"),
    ("scheduling.volcano.sh", "podgroups", f"{FOLLOW} create patch delete"),
    ("scheduling.volcano.sh", "queues", f"{FOLLOW} patch"),
    ("scheduling.volcano.sh", "queues/status", "patch"),
    ("topology.volcano.sh", "hypernodes", f"{FOLLOW} create patch delete"),
    ("topology.volcano.sh", "hypernodes/status", "patch"),
    ("config.volcano.sh", "colocationconfigurations", FOLLOW),
    ("scheduling.k8s.io", "priorityclasses", FOLLOW),
    ("", "pods", f"{FOLLOW} create patch delete"),
    ("", "pods/finalizers", "update"),
    ("", "events", "create patch"),
    ("", "nodes", FOLLOW),
    ("", "persistentvolumeclaims", f"{FOLLOW} create"),
    ("", "services", f"{FOLLOW} create delete"),
    ("", "configmaps", f"{FOLLOW} create patch delete"),
    ("", "secrets", "get create delete"),
    ("apps", "replicasets statefulsets", FOLLOW),
    ("apps", "daemonsets", "get"),
    ("batch", "jobs", "get"),
    ("networking.k8s.io", "networkpolicies", "create delete"),
)
SHARDING: Final[Rules] = (("shard.volcano.sh", "nodeshards", f"{FOLLOW} create patch delete"),)
ADMISSION: Final[Rules] = (
    ("scheduling.volcano.sh", "queues", FOLLOW),
    ("", "namespaces", FOLLOW),
    ("", "nodes", "list"),
    ("reservation.volcano.sh", "reservations", "list"),
)
HISTORY: Final[Rules] = (
    ("", "pods nodes", FOLLOW),
    ("", "namespaces", "get"),
    ("batch", "jobs", FOLLOW),
    ("batch.volcano.sh", "jobs", FOLLOW),
    ("scheduling.volcano.sh", "podgroups queues", FOLLOW),
    ("metrics.k8s.io", "pods", "list"),
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
)
DASHBOARD: Final[Rules] = (
    ("", "pods nodes", FOLLOW),
    ("batch.volcano.sh", "jobs", FOLLOW),
    ("scheduling.volcano.sh", "podgroups queues", FOLLOW),
    ("flow.volcano.sh", "jobflows", FOLLOW),
    ("topology.volcano.sh", "hypernodes", FOLLOW),
    ("reservation.volcano.sh", "reservations", FOLLOW),
    ("authentication.k8s.io", "tokenreviews", "create"),
)
EDITOR: Final[Rules] = (
    ("batch.volcano.sh", "jobs", "create get list update delete"),
    # A Command (suspend, resume) blocks the deletion of its job; some clusters demand this right for that.
    ("batch.volcano.sh", "jobs/finalizers", "update"),
    ("bus.volcano.sh", "commands", "create get list"),
)
VIEWER: Final[Rules] = (("batch.volcano.sh", "jobs", "get list"),)
RESERVATION_ADMINISTRATOR: Final[Rules] = (
    ("reservation.volcano.sh", "reservations", "create get list watch update patch delete"),
    ("", "nodes", "get list"),
    ("scheduling.volcano.sh", "queues", "get list"),
)
SERVED: Final = tuple(webhook for webhook in WEBHOOKS if webhook.in_chart)
"""Webhooks of an installation: those for Volcano's own kinds, so that pods start whether or not we answer."""
APART: Final = "manager.enabled=false"
TOGETHER: Final = "manager.enabled=true"
"""Scheduler and controllers as one process. It runs as the controllers, whose word on who submitted a job is taken, and
has the scheduler's rights too."""
WITH_WEBHOOK: Final = "admission.mode=webhook"
WITH_HISTORY: Final = "history.enabled"
WITH_DASHBOARD: Final = "dashboard.enabled"


def rbac_parts(values: Values) -> Iterator[Part]:
    yield from _component("scheduler", SCHEDULER, values)
    yield from _lease("scheduler", "volcano", values)
    yield from _component("controllers", CONTROLLERS, values)
    yield from _lease("controllers", "vc-controller-manager", values)
    yield Part("manager", _binding("volcano-manager", "volcano-scheduler", "volcano-controllers", values), TOGETHER)
    lease = _role_binding("volcano-manager-lease", "volcano-scheduler-lease", "volcano-controllers", values)
    yield Part("manager", lease, TOGETHER)
    for body in _cluster_role("volcano-controllers-sharding", "volcano-controllers", [*_rules(SHARDING)], values):
        yield Part("controllers-rbac", body, "controllers.sharding")
    yield from _component("admission", ADMISSION, values, [*_rules(ADMISSION), *_registration()], WITH_WEBHOOK)
    yield from _component("history", HISTORY, values, condition=WITH_HISTORY)
    yield from _lease("history", "volcano-history", values, WITH_HISTORY)
    yield from _component("dashboard", DASHBOARD, values, condition=WITH_DASHBOARD)
    yield from _certificates(values)
    users = (
        ("vcjob-editor-role", EDITOR),
        ("vcjob-viewer-role", VIEWER),
        ("reservation-administrator-role", RESERVATION_ADMINISTRATOR),
    )
    for name, rules in users:
        yield Part("user-roles", _of_cluster(name, [*_rules(rules)]), "roles.enabled")


def _component(
    name: str, table: Rules, values: Values, rules: list[JSON] | None = None, condition: str = ""
) -> Iterator[Part]:
    account = f"volcano-{name}"
    yield Part(f"{name}-rbac", _account(account, values), condition)
    for body in _cluster_role(account, account, rules or [*_rules(table)], values):
        yield Part(f"{name}-rbac", body, condition)


def _account(name: str, values: Values) -> JSON:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": values.namespace}}


def _rules(table: Rules) -> Iterator[JSON]:
    for group, resources, verbs in table:
        yield {"apiGroups": [group], "resources": resources.split(), "verbs": verbs.split()}


def _registration() -> Iterator[JSON]:
    """Each webhook configuration by its name: its CA is kept up to date."""
    for kind in ("mutating", "validating"):
        yield {
            "apiGroups": ["admissionregistration.k8s.io"],
            "resources": [f"{kind}webhookconfigurations"],
            "resourceNames": [configuration_name(webhook.path) for webhook in SERVED if webhook.kind == kind],
            "verbs": ["get", "update"],
        }


def _cluster_role(name: str, account: str, rules: list[JSON], values: Values) -> Iterator[JSON]:
    yield _of_cluster(name, rules)
    yield _binding(name, name, account, values)


def _binding(name: str, role: str, account: str, values: Values) -> JSON:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": values.namespace}],
    }


def _of_cluster(name: str, rules: list[JSON]) -> JSON:
    return {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}


def _role(name: str, account: str, rules: list[JSON], values: Values) -> Iterator[JSON]:
    metadata = {"name": name, "namespace": values.namespace}
    yield {"apiVersion": f"{GROUP}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    yield _role_binding(name, name, account, values)


def _role_binding(name: str, role: str, account: str, values: Values) -> JSON:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": name, "namespace": values.namespace},
        "roleRef": {"apiGroup": GROUP, "kind": "Role", "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": values.namespace}],
    }


def _lease(name: str, lease: str, values: Values, condition: str = "") -> Iterator[Part]:
    group = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"]}
    rules = [{**group, "verbs": ["create"]}, {**group, "resourceNames": [lease], "verbs": ["get", "update"]}]
    for body in _role(f"volcano-{name}-lease", f"volcano-{name}", rules, values):
        yield Part(f"{name}-rbac", body, condition)


def _certificates(values: Values) -> Iterator[Part]:
    """The job that makes the webhook's certificate may see and write that one Secret."""
    account = "volcano-admission-init"
    group = {"apiGroups": [""], "resources": ["secrets"]}
    rules = [
        {**group, "verbs": ["create"]},
        {**group, "resourceNames": ["volcano-admission-secret"], "verbs": ["get", "patch"]},
    ]
    for body in (_account(account, values), *_role(account, account, rules, values)):
        yield Part("admission-rbac", body, WITH_WEBHOOK)
