"""The table of built-in kinds: which strategy each has. A kind without a row has nothing particular."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.kinds.api_services import API_SERVICES, ApiServices
from volcano.embedded.apiserver.kinds.autoscalers import Autoscalers
from volcano.embedded.apiserver.kinds.config_maps import ConfigMaps, Secrets
from volcano.embedded.apiserver.kinds.cron_jobs import CronJobs
from volcano.embedded.apiserver.kinds.definitions import Definitions
from volcano.embedded.apiserver.kinds.events import CoreEvents, GroupEvents
from volcano.embedded.apiserver.kinds.namespaces import Namespaces
from volcano.embedded.apiserver.kinds.nodes import Nodes
from volcano.embedded.apiserver.kinds.pods import Pods
from volcano.embedded.apiserver.kinds.priority_classes import PriorityClasses
from volcano.embedded.apiserver.kinds.quotas_and_budgets import PodDisruptionBudgets, Quotas
from volcano.embedded.apiserver.kinds.rbac import RoleBindings, Roles
from volcano.embedded.apiserver.kinds.resource_claims import ResourceClaims
from volcano.embedded.apiserver.kinds.services import Services
from volcano.embedded.apiserver.kinds.strategy import Strategy
from volcano.embedded.apiserver.kinds.volumes import Volumes
from volcano.embedded.apiserver.kinds.webhook_configurations import WebhookConfigurations
from volcano.embedded.apiserver.kinds.workloads import (
    BatchJobs,
    PodTemplates,
    ReplicaSets,
    ReplicationControllers,
    Workloads,
)


class WithoutGeneration(Strategy):
    """Kinds whose changes are not counted."""

    has_generation = False


class Leases(WithoutGeneration):
    keeps_other_parts = True


class ResourceSlices(Strategy):
    selectable_fields: Mapping[str, str] = {"spec.nodeName": "", "spec.driver": ""}


STRATEGIES: Final[Mapping[str, type[Strategy]]] = {
    "pods": Pods,
    "podtemplates": PodTemplates,
    "replicationcontrollers": ReplicationControllers,
    "deployments.apps": Workloads,
    "replicasets.apps": ReplicaSets,
    "statefulsets.apps": Workloads,
    "daemonsets.apps": Workloads,
    "jobs.batch": BatchJobs,
    "cronjobs.batch": CronJobs,
    "horizontalpodautoscalers.autoscaling": Autoscalers,
    "namespaces": Namespaces,
    "nodes": Nodes,
    "services": Services,
    "endpoints": WithoutGeneration,
    "configmaps": ConfigMaps,
    "secrets": Secrets,
    "serviceaccounts": WithoutGeneration,
    "events": CoreEvents,
    "events.events.k8s.io": GroupEvents,
    "resourcequotas": Quotas,
    "limitranges": WithoutGeneration,
    "poddisruptionbudgets.policy": PodDisruptionBudgets,
    "priorityclasses.scheduling.k8s.io": PriorityClasses,
    "persistentvolumes": Volumes,
    "persistentvolumeclaims": Volumes,
    "storageclasses.storage.k8s.io": WithoutGeneration,
    "csinodes.storage.k8s.io": WithoutGeneration,
    "volumeattachments.storage.k8s.io": WithoutGeneration,
    "csistoragecapacities.storage.k8s.io": WithoutGeneration,
    "roles.rbac.authorization.k8s.io": Roles,
    "clusterroles.rbac.authorization.k8s.io": Roles,
    "rolebindings.rbac.authorization.k8s.io": RoleBindings,
    "clusterrolebindings.rbac.authorization.k8s.io": RoleBindings,
    "customresourcedefinitions.apiextensions.k8s.io": Definitions,
    API_SERVICES: ApiServices,
    "mutatingwebhookconfigurations.admissionregistration.k8s.io": WebhookConfigurations,
    "validatingwebhookconfigurations.admissionregistration.k8s.io": WebhookConfigurations,
    "leases.coordination.k8s.io": Leases,
    "controllerrevisions.apps": WithoutGeneration,
    "resourceclaims.resource.k8s.io": ResourceClaims,
    "resourceslices.resource.k8s.io": ResourceSlices,
}


def strategy_for(row: ResourceType) -> Strategy:
    """The strategy of a built-in kind."""
    return STRATEGIES.get(row.qualified, Strategy)(row)
