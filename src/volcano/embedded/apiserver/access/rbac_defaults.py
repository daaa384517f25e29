"""The roles and bindings every cluster starts with, as in Kubernetes, with Volcano's kinds in admin, edit and view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from volcano.api.meta import JSON

_LABELS: Final = {"kubernetes.io/bootstrapping": "rbac-defaults"}
READ: Final = ("get", "list", "watch")
WRITE: Final = ("create", "delete", "deletecollection", "patch", "update")
ALL: Final = (*READ, *WRITE)
API: Final = "rbac.authorization.k8s.io"
_VOLCANO_GROUPS: Final = (
    "batch.volcano.sh", "bus.volcano.sh", "flow.volcano.sh", "scheduling.volcano.sh", "config.volcano.sh",
)  # fmt: skip
_CORE_EDITABLE: Final = (
    "pods", "pods/attach", "pods/exec", "pods/portforward", "pods/proxy", "pods/eviction", "services", "services/proxy",
    "endpoints", "configmaps", "secrets", "persistentvolumeclaims", "serviceaccounts", "replicationcontrollers",
    "replicationcontrollers/scale", "events",
)  # fmt: skip
_CORE_VIEWABLE: Final = (
    "pods", "pods/log", "pods/status", "services", "services/status", "endpoints", "configmaps", "namespaces",
    "persistentvolumeclaims", "persistentvolumeclaims/status", "serviceaccounts", "replicationcontrollers",
    "replicationcontrollers/scale", "replicationcontrollers/status", "events", "limitranges", "resourcequotas",
    "resourcequotas/status", "bindings",
)  # fmt: skip
_WORKLOADS: Final = (
    ("apps", ("deployments", "deployments/scale", "replicasets", "replicasets/scale", "statefulsets",
              "statefulsets/scale", "daemonsets", "controllerrevisions")),
    ("batch", ("jobs", "cronjobs")),
    ("autoscaling", ("horizontalpodautoscalers", "horizontalpodautoscalers/status")),
    ("policy", ("poddisruptionbudgets",)),
    ("networking.k8s.io", ("ingresses", "networkpolicies")),
    ("coordination.k8s.io", ("leases",)),
    ("resource.k8s.io", ("resourceclaims", "resourceclaimtemplates")),
    ("discovery.k8s.io", ("endpointslices",)),
)  # fmt: skip


def rule(verbs: Sequence[str], groups: Sequence[str], resources: Sequence[str], names: Sequence[str] = ()) -> JSON:
    made: JSON = {"verbs": list(verbs), "apiGroups": list(groups), "resources": list(resources)}
    return made | ({"resourceNames": list(names)} if names else {})


def urls(verbs: Sequence[str], *paths: str) -> JSON:
    return {"verbs": list(verbs), "nonResourceURLs": list(paths)}


def _role(name: str, rules: Sequence[JSON], *, aggregates: str = "", labels: JSON | None = None) -> JSON:
    role: JSON = {
        "metadata": {"name": name, "labels": {**_LABELS, **(labels or {})},
                     "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}},
        "rules": list(rules),
    }  # fmt: skip
    if aggregates:
        selector = {"matchLabels": {f"rbac.authorization.k8s.io/aggregate-to-{aggregates}": "true"}}
        role["aggregationRule"] = {"clusterRoleSelectors": [selector]}
    return role


def _binding(name: str, role: str, *subjects: JSON) -> JSON:
    return {
        "metadata": {"name": name, "labels": dict(_LABELS),
                     "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}},
        "roleRef": {"apiGroup": API, "kind": "ClusterRole", "name": role},
        "subjects": list(subjects),
    }  # fmt: skip


def _group(name: str) -> JSON:
    return {"kind": "Group", "apiGroup": API, "name": name}


def _user(name: str) -> JSON:
    return {"kind": "User", "apiGroup": API, "name": name}


def _viewing() -> list[JSON]:
    rules = [rule(READ, ("",), _CORE_VIEWABLE)]
    rules += [rule(READ, (group,), resources) for group, resources in _WORKLOADS]
    rules += [rule(READ, _VOLCANO_GROUPS, ("*",)), rule(READ, ("metrics.k8s.io",), ("pods", "nodes"))]
    return rules


def _editing() -> list[JSON]:
    rules = [rule(ALL, ("",), _CORE_EDITABLE), rule(("impersonate",), ("",), ("serviceaccounts",))]
    rules += [rule(("create",), ("",), ("serviceaccounts/token",))]
    rules += [rule(ALL, (group,), resources) for group, resources in _WORKLOADS]
    namespaced = ("jobs", "cronjobs", "commands", "podgroups", "jobtemplates", "jobflows", "colocationconfigurations")
    rules += [rule(ALL, _VOLCANO_GROUPS, (*namespaced, "jobs/status", "podgroups/status"))]
    return rules


def _administering() -> list[JSON]:
    return [
        rule(ALL, (API,), ("roles", "rolebindings")),
        rule(("create",), ("authorization.k8s.io",), ("localsubjectaccessreviews",)),
        rule(("update",), ("",), ("pods/status", "namespaces/finalize")),
    ]


def _scheduling() -> list[JSON]:
    return [
        rule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",)),
        rule(("create", "get", "update", "list", "watch", "patch"), ("coordination.k8s.io",), ("leases",)),
        rule(READ, ("",), ("nodes", "pods", "services", "replicationcontrollers", "persistentvolumeclaims",
                           "persistentvolumes", "namespaces", "configmaps")),
        rule(("delete", "get", "list", "watch"), ("",), ("pods",)),
        rule(("create",), ("",), ("bindings", "pods/binding", "pods/eviction")),
        rule(("patch", "update"), ("",), ("pods/status", "persistentvolumeclaims/status")),
        rule(("patch", "update"), ("",), ("persistentvolumeclaims", "persistentvolumes")),
        rule(READ, ("apps", "policy", "storage.k8s.io", "scheduling.k8s.io"), ("*",)),
        rule(ALL, ("resource.k8s.io",), ("*",)),
        rule(("*",), (*_VOLCANO_GROUPS, "topology.volcano.sh", "nodeinfo.volcano.sh", "shard.volcano.sh"), ("*",)),
        rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
        rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews",)),
    ]  # fmt: skip


def _node() -> list[JSON]:
    return [
        rule(("create", "get", "list", "watch", "update", "patch", "delete"), ("",), ("nodes",)),
        rule(("patch", "update"), ("",), ("nodes/status",)),
        rule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",)),
        rule(("create", "delete", "get", "list", "watch"), ("",), ("pods",)),
        rule(("patch", "update"), ("",), ("pods/status",)),
        rule(("create",), ("",), ("pods/eviction", "serviceaccounts/token")),
        rule(READ, ("",), ("services", "configmaps", "secrets", "persistentvolumeclaims", "persistentvolumes",
                           "serviceaccounts", "endpoints")),
        rule(("create", "get", "update", "patch", "delete"), ("coordination.k8s.io",), ("leases",)),
        rule(READ, ("storage.k8s.io", "discovery.k8s.io"), ("*",)),
        rule((*READ, "create", "update", "patch", "delete"), ("storage.k8s.io",), ("csinodes",)),
        rule((*READ, "create", "update", "patch", "delete"), ("resource.k8s.io",), ("resourceslices",)),
        rule(("get",), ("resource.k8s.io",), ("resourceclaims",)),
        rule((*READ, "create", "update", "patch"), ("nodeinfo.volcano.sh",), ("numatopologies",)),
        rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
        rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews", "localsubjectaccessreviews")),
    ]  # fmt: skip


CLUSTER_ROLES: Final[Sequence[JSON]] = (
    _role("cluster-admin", [rule(("*",), ("*",), ("*",)), urls(("*",), "*")]),
    _role("admin", [*_viewing(), *_editing(), *_administering()], aggregates="admin"),
    _role("edit", [*_viewing(), *_editing()], aggregates="edit",
          labels={"rbac.authorization.k8s.io/aggregate-to-admin": "true"}),
    _role("view", _viewing(), aggregates="view", labels={"rbac.authorization.k8s.io/aggregate-to-edit": "true"}),
    _role("system:basic-user", [
        rule(("create",), ("authorization.k8s.io",), ("selfsubjectaccessreviews", "selfsubjectrulesreviews")),
        rule(("create",), ("authentication.k8s.io",), ("selfsubjectreviews",)),
        rule(READ, ("scheduling.volcano.sh",), ("queues",)),
        urls(("get",), "/volcano/history/*"),  # which answers within the caller's rights on jobs
    ]),
    _role("system:discovery", [urls(("get",), "/api", "/api/*", "/apis", "/apis/*", "/healthz", "/livez", "/openapi",
                                    "/openapi/*", "/readyz", "/version", "/version/")]),
    _role("system:public-info-viewer", [urls(("get",), "/healthz", "/livez", "/readyz", "/version", "/version/")]),
    _role("system:aggregated-metrics-reader", [rule(READ, ("metrics.k8s.io",), ("pods", "nodes"))],
          labels={f"rbac.authorization.k8s.io/aggregate-to-{role}": "true" for role in ("admin", "edit", "view")}),
    _role("system:monitoring", [urls(("get",), "/metrics", "/healthz", "/healthz/*", "/livez", "/livez/*", "/readyz",
                                     "/readyz/*")]),
    _role("system:service-account-issuer-discovery",
          [urls(("get",), "/.well-known/openid-configuration", "/openid/v1/jwks")]),
    _role("system:auth-delegator", [rule(("create",), ("authentication.k8s.io",), ("tokenreviews",)),
                                    rule(("create",), ("authorization.k8s.io",), ("subjectaccessreviews",))]),
    _role("system:node", _node()),
    _role("system:node-proxier", [rule(("list", "watch"), ("",), ("services", "endpoints")),
                                  rule(READ, ("",), ("nodes",)),
                                  rule(("list", "watch"), ("discovery.k8s.io",), ("endpointslices",)),
                                  rule(("create", "patch", "update"), ("", "events.k8s.io"), ("events",))]),
    _role("system:persistent-volume-provisioner", [
        rule((*READ, "create", "delete"), ("",), ("persistentvolumes",)),
        rule((*READ, "update"), ("",), ("persistentvolumeclaims",)),
        rule(READ, ("storage.k8s.io",), ("storageclasses",)),
        rule(("create", "patch", "update", "list", "watch"), ("",), ("events",)),
    ]),
    _role("system:kube-scheduler", _scheduling()),
    _role("system:volume-scheduler", [rule((*READ, "patch", "update"), ("",), ("persistentvolumes",)),
                                      rule((*READ, "patch", "update"), ("",), ("persistentvolumeclaims",)),
                                      rule(READ, ("storage.k8s.io",), ("storageclasses",))]),
    _role("system:kube-controller-manager", [rule(("*",), ("*",), ("*",)), urls(("get",), "*")]),
)  # fmt: skip

CLUSTER_ROLE_BINDINGS: Final[Sequence[JSON]] = (
    _binding("cluster-admin", "cluster-admin", _group("system:masters")),
    _binding("system:basic-user", "system:basic-user", _group("system:authenticated")),
    _binding("system:discovery", "system:discovery", _group("system:authenticated")),
    _binding("system:public-info-viewer", "system:public-info-viewer", _group("system:authenticated"),
             _group("system:unauthenticated")),
    _binding("system:monitoring", "system:monitoring", _group("system:monitoring")),
    _binding("system:service-account-issuer-discovery", "system:service-account-issuer-discovery",
             _group("system:serviceaccounts")),
    _binding("system:node", "system:node", _group("system:nodes")),
    _binding("system:node-proxier", "system:node-proxier", _user("system:kube-proxy")),
    _binding("system:kube-scheduler", "system:kube-scheduler", _user("system:kube-scheduler")),
    _binding("system:volume-scheduler", "system:volume-scheduler", _user("system:kube-scheduler")),
    _binding("system:kube-controller-manager", "system:kube-controller-manager",
             _user("system:kube-controller-manager")),
)  # fmt: skip
