"""The Deployments of an installation, and the certificate job of its webhook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from volcano.admission.webhook.registration import Location, configuration, configuration_type
from volcano.api.meta import JSON
from volcano.install.rbac import APART, SERVED, TOGETHER, WITH_DASHBOARD, WITH_HISTORY, WITH_WEBHOOK
from volcano.install.values import Part, Values

HEALTH_PORT: Final = 11251
SCHEDULER_METRICS_PORT: Final = 8080
CONTROLLER_METRICS_PORT: Final = 8081
WEBHOOK_PORT: Final = 8443
HISTORY_PORT: Final = 8084
DASHBOARD_PORT: Final = 8480
USER_ID: Final = 10001
CONFIG_MAP: Final = "volcano-scheduler-configmap"
SCHEDULER_CONFIGURATION: Final = "--scheduler-conf=/volcano.scheduler/volcano-scheduler.conf"
SCHEDULER_MOUNTS: Final[dict[str, tuple[str, JSON]]] = {
    "config": ("/volcano.scheduler", {"configMap": {"name": CONFIG_MAP}})
}
SECRET: Final = "volcano-admission-secret"
SERVICE: Final = "volcano-admission-service"


def labels(name: str) -> dict[str, str]:
    return {"app": f"volcano-{name}", "app.kubernetes.io/name": "volcano", "app.kubernetes.io/component": name}


def workload_parts(values: Values) -> Iterator[Part]:
    yield Part("scheduler", scheduler_config(values))
    yield Part("scheduler", scheduler(values), APART)
    for sharding in (False, True):
        condition = f"controllers.sharding={str(sharding).lower()}"
        yield Part("controllers", controllers(values, sharding=sharding), f"{APART}&{condition}")
        yield Part("manager", manager(values, sharding=sharding), f"{TOGETHER}&{condition}")
    yield Part("history", history(values), WITH_HISTORY)
    yield Part("dashboard", dashboard(values), WITH_DASHBOARD)
    for body in (certificate_job(values), certificate_renewal(values), admission(values)):
        yield Part("admission", body, WITH_WEBHOOK)
    for body in webhooks(values):
        yield Part("webhooks", body, WITH_WEBHOOK)


def scheduler_config(values: Values) -> JSON:
    metadata = {"name": CONFIG_MAP, "namespace": values.namespace, "labels": labels("scheduler")}
    data = {"volcano-scheduler.conf": values("scheduler.config")}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def scheduler(values: Values) -> JSON:
    arguments = [
        "scheduler",
        SCHEDULER_CONFIGURATION,
        "--enable-metrics=true",
        f"--listen-address=:{SCHEDULER_METRICS_PORT}",
        *_electing(values),
    ]
    return _deployment(
        "scheduler",
        values,
        arguments,
        ports={"metrics": SCHEDULER_METRICS_PORT, "health": HEALTH_PORT},
        mounts=SCHEDULER_MOUNTS,
    )


def manager(values: Values, *, sharding: bool) -> JSON:
    """Scheduler and controllers in one process."""
    arguments = [
        "manager",
        SCHEDULER_CONFIGURATION,
        _chosen_controllers(sharding=sharding),
        "--enable-metrics=true",
        f"--listen-address=:{SCHEDULER_METRICS_PORT}",
        f"--controllers-listen-address=:{CONTROLLER_METRICS_PORT}",
        *_electing(values),
    ]
    ports = {"metrics": SCHEDULER_METRICS_PORT, "controllers": CONTROLLER_METRICS_PORT, "health": HEALTH_PORT}
    return _deployment(
        "manager", values, arguments, ports=ports, mounts=SCHEDULER_MOUNTS, account="volcano-controllers"
    )


def _chosen_controllers(*, sharding: bool) -> str:
    return f"--controllers={'*' if sharding else '*,-sharding-controller'}"


def controllers(values: Values, *, sharding: bool) -> JSON:
    arguments = [
        "controller-manager",
        _chosen_controllers(sharding=sharding),
        "--enable-metrics=true",
        f"--listen-address=:{CONTROLLER_METRICS_PORT}",
        *_electing(values),
    ]
    return _deployment(
        "controllers", values, arguments, ports={"metrics": CONTROLLER_METRICS_PORT, "health": HEALTH_PORT}, mounts={}
    )


def history(values: Values) -> JSON:
    """The recorder; it answers questions at the port of its metrics."""
    arguments = [
        "history",
        f"--listen-address=:{HISTORY_PORT}",
        f"--retention={values('history.retention')}",
        f"--size={values('history.size')}",
        *(each for each in _electing(values) if not each.startswith("--scheduler-name=")),
    ]
    body = _deployment("history", values, arguments, ports={"metrics": HISTORY_PORT, "health": HEALTH_PORT}, mounts={})
    reference = {"secretKeyRef": {"name": values("history.databaseSecret"), "key": "url"}}
    [container] = body["spec"]["template"]["spec"]["containers"]
    container["env"] = [*container["env"], {"name": "VOLCANO_HISTORY_DATABASE", "valueFrom": reference}]
    return body


def dashboard(values: Values) -> JSON:
    """Plain HTTP inside the cluster: what makes it reachable from outside has to end TLS."""
    arguments = ["dashboard", f"--listen-address=:{DASHBOARD_PORT}", "--behind-tls", f"-v={values('logLevel')}"]
    return _deployment("dashboard", values, arguments, ports={"health": DASHBOARD_PORT}, mounts={})


def admission(values: Values) -> JSON:
    arguments = [
        "webhook-manager",
        f"--enabled-admission={','.join(webhook.path for webhook in SERVED)}",
        "--register-webhooks=false",
        "--tls-cert-file=/admission.local.config/certificates/tls.crt",
        "--tls-private-key-file=/admission.local.config/certificates/tls.key",
        "--ca-cert-file=/admission.local.config/certificates/ca.crt",
        f"--webhook-namespace={values.namespace}",
        f"--webhook-service-name={SERVICE}",
        f"--port={WEBHOOK_PORT}",
        *_healthy(values),
    ]
    secret = {"secret": {"secretName": SECRET, "defaultMode": 0o440}}
    return _deployment(
        "admission",
        values,
        arguments,
        ports={"webhook": WEBHOOK_PORT, "health": HEALTH_PORT},
        mounts={"certificates": ("/admission.local.config/certificates", secret)},
        health_scheme="HTTPS",
    )


def _healthy(values: Values) -> list[str]:
    return [
        "--enable-healthz=true",
        f"--healthz-address=:{HEALTH_PORT}",
        f"--scheduler-name={values('schedulerName')}",
        f"--v={values('logLevel')}",
    ]


def _electing(values: Values) -> list[str]:
    return ["--leader-elect=true", f"--leader-elect-resource-namespace={values.namespace}", *_healthy(values)]


def _deployment(
    name: str,
    values: Values,
    arguments: list[str],
    *,
    ports: dict[str, int],
    mounts: dict[str, tuple[str, JSON]],
    health_scheme: str = "HTTP",
    account: str = "",
) -> JSON:
    probe = {"httpGet": {"path": "/healthz", "port": "health", "scheme": health_scheme}}
    container = {
        **_container(name, values, [*arguments, *values.extra(f"{name}.extraArgs")], mounts),
        "ports": [{"name": port, "containerPort": number} for port, number in ports.items()],
        "livenessProbe": {**probe, "periodSeconds": 10, "failureThreshold": 6, "timeoutSeconds": 5},
        "readinessProbe": {**probe, "periodSeconds": 5, "timeoutSeconds": 5},
        "startupProbe": {**probe, "periodSeconds": 2, "failureThreshold": 60},
        "resources": values(f"{name}.resources"),
    }
    pod = {
        **_pod(account or f"volcano-{name}", values, container, mounts),
        "nodeSelector": values(f"{name}.nodeSelector"),
        "tolerations": values(f"{name}.tolerations"),
        "affinity": values(f"{name}.affinity"),
        "priorityClassName": values(f"{name}.priorityClassName"),
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": f"volcano-{name}"}},
            }
        ],
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": f"volcano-{name}", "namespace": values.namespace, "labels": labels(name)},
        "spec": {
            "replicas": values(f"{name}.replicas"),
            "selector": {"matchLabels": {"app": f"volcano-{name}"}},
            "template": {"metadata": {"labels": labels(name)}, "spec": pod},
        },
    }


def _container(name: str, values: Values, arguments: list[str], mounts: dict[str, tuple[str, JSON]]) -> JSON:
    return {
        "name": f"volcano-{name}",
        "image": f"{values('image.repository')}:{values('image.tag')}",
        "imagePullPolicy": values("image.pullPolicy"),
        "args": arguments,
        "env": [{"name": "HOME", "value": "/tmp"}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "privileged": False,
            "readOnlyRootFilesystem": True,
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            *({"name": volume, "mountPath": path, "readOnly": True} for volume, (path, _) in mounts.items()),
        ],
    }


def _pod(account: str, values: Values, container: JSON, mounts: dict[str, tuple[str, JSON]]) -> JSON:
    return {
        "serviceAccountName": account,
        "imagePullSecrets": values("image.pullSecrets"),
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": USER_ID,
            "runAsGroup": USER_ID,
            "fsGroup": USER_ID,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}},
            *({"name": volume, **source} for volume, (_, source) in mounts.items()),
        ],
    }


def certificate_job(values: Values) -> JSON:
    """The job that creates the webhook's certificate unless there is a valid one."""
    name = f"volcano-admission-init{values.revision}"  # a Job cannot be changed, so each upgrade has its own
    metadata = {"name": name, "namespace": values.namespace, "labels": labels("admission-init")}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": _certificate_job_spec(values)}


def certificate_renewal(values: Values) -> JSON:
    """The same job every week, so that the certificate never expires."""
    metadata = {"name": "volcano-admission-renew", "namespace": values.namespace, "labels": labels("admission-init")}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": metadata,
        "spec": {
            "schedule": "17 3 * * 0",
            "concurrencyPolicy": "Forbid",
            "successfulJobsHistoryLimit": 1,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": {"spec": _certificate_job_spec(values)},
        },
    }


def _certificate_job_spec(values: Values) -> JSON:
    arguments = [
        "webhook-certificates",
        f"--namespace={values.namespace}",
        f"--secret={SECRET}",
        f"--service={SERVICE}",
    ]
    container = _container("admission-init", values, arguments, {})
    container["resources"] = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}
    pod = {**_pod("volcano-admission-init", values, container, {}), "restartPolicy": "OnFailure"}
    template = {"metadata": {"labels": labels("admission-init")}, "spec": pod}
    return {"backoffLimit": 10, "ttlSecondsAfterFinished": 3600, "template": template}


def webhooks(values: Values) -> Iterator[JSON]:
    """The webhook configurations; the CA in them is written by the webhook manager."""
    location = Location(namespace=values.namespace, service=SERVICE)
    for webhook in SERVED:
        row = configuration_type(webhook)
        body = configuration(webhook, location, b"")
        for entry in body["webhooks"]:
            del entry["clientConfig"]["caBundle"]
            entry["failurePolicy"] = values("admission.failurePolicy")
            for expression in entry.get("namespaceSelector", {}).get("matchExpressions", ()):
                expression["values"] = ["kube-system", values.namespace]
        yield {"apiVersion": row.api_version, "kind": row.kind, **body}
