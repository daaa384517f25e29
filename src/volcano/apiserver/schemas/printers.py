"""The rows of `kubectl get` for Kubernetes' own kinds, and their columns; pods have a file of their own.

Rows are always complete: clients leave out columns of priority 1 unless asked for wide output.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeAlias

from volcano.api.meta import JSON
from volcano.api.quantity import QuantityError, format_quantity
from volcano.apiserver.schemas.ages import age, human_duration
from volcano.apiserver.schemas.pod_cells import NONE, pod_cells
from volcano.apiserver.schemas.reading import at, condition, mapping, moment, number, objects, text, texts

Cells: TypeAlias = Callable[[JSON, datetime], list[Any]]
UNSET: Final = "<unset>"
_ROLE_PREFIX: Final = "node-role.kubernetes.io/"
_MODES: Final = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip
_SHOWN: Final = 3


def _name(obj: JSON) -> str:
    return text(obj, "metadata", "name")


def _age(obj: JSON, now: datetime) -> str:
    return age(moment(obj, "metadata", "creationTimestamp"), now)


def _containers(obj: JSON, *path: str) -> list[Any]:
    containers = objects(obj, *path, "spec", "containers")
    return [",".join(text(c, "name") for c in containers), ",".join(text(c, "image") for c in containers)]


def _labels(labels: Mapping[str, Any]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


def selector_text(selector: Any) -> str:
    """A label selector on one line: `app=web,tier in (a,b)`."""
    if not isinstance(selector, dict):
        return NONE
    terms = [(key, f"{key}={value}") for key, value in mapping(selector, "matchLabels").items()]
    for rule in objects(selector, "matchExpressions"):
        key, values = text(rule, "key"), ",".join(sorted(texts(rule, "values")))
        shown = {"In": f"{key} in ({values})", "NotIn": f"{key} notin ({values})", "Exists": key}
        terms.append((key, shown.get(text(rule, "operator"), f"!{key}")))
    return ",".join(term for _, term in sorted(terms)) or NONE


def _quantity(value: Any) -> str:
    try:
        return format_quantity(value) if isinstance(value, str | int | float) else "0"
    except QuantityError:
        return str(value)


def _or_none(value: str) -> str:
    return value or NONE


def _first_few(items: Iterable[str], total: int | None = None) -> str:
    found = list(items)
    shown = ",".join(found[:_SHOWN])
    count = len(found) if total is None else total
    return f"{shown} + {count - _SHOWN} more..." if len(found) > _SHOWN else shown


# -- core/v1 --------------------------------------------------------------------------------------------------
def _pod_template(obj: JSON, now: datetime) -> list[Any]:
    return [_name(obj), *_containers(obj, "template"), _labels(mapping(obj, "template", "metadata", "labels"))]


def _replicas(obj: JSON, now: datetime) -> list[Any]:
    is_controller = obj.get("kind") == "ReplicationController"
    selector = mapping(obj, "spec", "selector")
    return [
        _name(obj),
        number(obj, "spec", "replicas"),
        number(obj, "status", "replicas"),
        number(obj, "status", "readyReplicas"),
        _age(obj, now),
        *_containers(obj, "spec", "template"),
        _labels(selector) if is_controller else selector_text(at(obj, "spec", "selector")),
    ]


def _service(obj: JSON, now: datetime) -> list[Any]:
    addresses = texts(obj, "spec", "clusterIPs") or [text(obj, "spec", "clusterIP")]
    ports = [
        f"{port.get('port', 0)}:{port['nodePort']}/{text(port, 'protocol')}"
        if number(port, "nodePort")
        else f"{port.get('port', 0)}/{text(port, 'protocol')}"
        for port in objects(obj, "spec", "ports")
    ]
    return [
        _name(obj),
        text(obj, "spec", "type"),
        addresses[0] or NONE,
        _external_address(obj),
        _or_none(",".join(ports)),
        _age(obj, now),
        _labels(mapping(obj, "spec", "selector")),
    ]


def _external_address(service: JSON) -> str:
    kind = text(service, "spec", "type")
    if kind == "ExternalName":
        return text(service, "spec", "externalName")
    given = texts(service, "spec", "externalIPs")
    if kind == "LoadBalancer":
        balanced = _ingress_addresses(service)
        return ",".join([*([balanced] if balanced else []), *given]) or "<pending>"
    return ",".join(given) or NONE if kind in ("ClusterIP", "NodePort") else "<unknown>"


def _ingress_addresses(obj: JSON) -> str:
    entries = objects(obj, "status", "loadBalancer", "ingress")
    return ",".join(sorted({text(e, "ip") or text(e, "hostname") for e in entries} - {""}))


def _namespace(obj: JSON, now: datetime) -> list[Any]:
    return [_name(obj), text(obj, "status", "phase"), _age(obj, now)]


def _node(obj: JSON, now: datetime) -> list[Any]:
    ready = condition(objects(obj, "status", "conditions"), "Ready")
    states = ["Ready" if ready == "True" else "NotReady" if ready else "Unknown"]
    if at(obj, "spec", "unschedulable") is True:
        states.append("SchedulingDisabled")
    labels = mapping(obj, "metadata", "labels")
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    roles.add(text(labels, "kubernetes.io/role"))
    system = mapping(obj, "status", "nodeInfo")
    architecture = text(system, "architecture")
    kernel = text(system, "kernelVersion") or "<unknown>"
    return [
        _name(obj),
        ",".join(states),
        _or_none(",".join(sorted(roles - {""}))),
        _age(obj, now),
        text(system, "kubeletVersion"),
        _node_address(obj, "InternalIP"),
        _node_address(obj, "ExternalIP"),
        text(system, "osImage") or "<unknown>",
        f"{kernel} ({architecture})" if architecture else kernel,
        text(system, "containerRuntimeVersion") or "<unknown>",
    ]


def _node_address(node: JSON, kind: str) -> str:
    entries = objects(node, "status", "addresses")
    return next((text(entry, "address") for entry in entries if entry.get("type") == kind), NONE)


def _config_map(obj: JSON, now: datetime) -> list[Any]:
    return [_name(obj), len(mapping(obj, "data")) + len(mapping(obj, "binaryData")), _age(obj, now)]


def _secret(obj: JSON, now: datetime) -> list[Any]:
    return [_name(obj), text(obj, "type"), len(mapping(obj, "data")), _age(obj, now)]


def _aged(obj: JSON, now: datetime) -> list[Any]:
    return [_name(obj), _age(obj, now)]


def _endpoints(obj: JSON, now: datetime) -> list[Any]:
    found: list[str] = []
    for subset in objects(obj, "subsets"):
        addresses = [text(address, "ip") for address in objects(subset, "addresses")]
        ports = objects(subset, "ports")
        for port in ports:
            number_ = port.get("port", 0)
            found += [f"[{ip}]:{number_}" if ":" in ip else f"{ip}:{number_}" for ip in addresses]
        if not ports:
            found += addresses
    return [_name(obj), NONE if not objects(obj, "subsets") else _first_few(found), _age(obj, now)]


def _access_modes(modes: list[str]) -> str:
    return ",".join(_MODES[mode] for mode in _MODES if mode in modes)


def _storage_class(obj: JSON) -> str:
    annotated = text(obj, "metadata", "annotations", "volume.beta.kubernetes.io/storage-class")
    return annotated or text(obj, "spec", "storageClassName")


def _volume(obj: JSON, now: datetime) -> list[Any]:
    claim = mapping(obj, "spec", "claimRef")
    deleting = at(obj, "metadata", "deletionTimestamp") is not None
    return [
        _name(obj),
        _quantity(at(obj, "spec", "capacity", "storage")),
        _access_modes(texts(obj, "spec", "accessModes")),
        text(obj, "spec", "persistentVolumeReclaimPolicy"),
        "Terminating" if deleting else text(obj, "status", "phase"),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if claim else "",
        _storage_class(obj),
        text(obj, "spec", "volumeAttributesClassName") or UNSET,
        text(obj, "status", "reason"),
        _age(obj, now),
        text(obj, "spec", "volumeMode") or UNSET,
    ]


def _claim(obj: JSON, now: datetime) -> list[Any]:
    deleting = at(obj, "metadata", "deletionTimestamp") is not None
    bound = bool(text(obj, "spec", "volumeName"))
    return [
        _name(obj),
        "Terminating" if deleting else text(obj, "status", "phase"),
        text(obj, "spec", "volumeName"),
        _quantity(at(obj, "status", "capacity", "storage")) if bound else "",
        _access_modes(texts(obj, "status", "accessModes")) if bound else "",
        _storage_class(obj),
        text(obj, "spec", "volumeAttributesClassName") or UNSET,
        _age(obj, now),
        text(obj, "spec", "volumeMode") or UNSET,
    ]


def _event(obj: JSON, now: datetime) -> list[Any]:
    regarding = mapping(obj, "involvedObject") or mapping(obj, "regarding")
    first = moment(obj, "firstTimestamp") or moment(obj, "deprecatedFirstTimestamp") or moment(obj, "eventTime")
    last = moment(obj, "lastTimestamp") or moment(obj, "deprecatedLastTimestamp") or first
    count = number(obj, "count") or number(obj, "deprecatedCount") or 1
    if isinstance(obj.get("series"), dict):
        last, count = moment(obj, "series", "lastObservedTime"), number(obj, "series", "count")
    kind, name = text(regarding, "kind").lower(), text(regarding, "name")
    source = mapping(obj, "source") or mapping(obj, "deprecatedSource")
    component = text(source, "component") or text(obj, "reportingComponent") or text(obj, "reportingController")
    host = text(source, "host") or text(obj, "reportingInstance")
    return [
        age(last, now),
        text(obj, "type"),
        text(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        text(regarding, "fieldPath"),
        f"{component}, {host}" if host else component,
        (text(obj, "message") or text(obj, "note")).strip(),
        age(first, now),
        count,
        _name(obj),
    ]


def _quota(obj: JSON, now: datetime) -> list[Any]:
    hard, used = mapping(obj, "status", "hard"), mapping(obj, "status", "used")
    shown = {name: f"{name}: {_quantity(used.get(name))}/{_quantity(hard[name])}" for name in sorted(hard)}
    limits = [line for name, line in shown.items() if name.startswith("limits.")]
    requests = [line for name, line in shown.items() if not name.startswith("limits.")]
    return [_name(obj), ", ".join(requests), ", ".join(limits), _age(obj, now)]


# -- workloads ------------------------------------------------------------------------------------------------
def _deployment(obj: JSON, now: datetime) -> list[Any]:
    selector = selector_text(at(obj, "spec", "selector"))
    return [
        _name(obj),
        f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}",
        number(obj, "status", "updatedReplicas"),
        number(obj, "status", "availableReplicas"),
        _age(obj, now),
        *_containers(obj, "spec", "template"),
        "" if selector == NONE else selector,
    ]


def _stateful_set(obj: JSON, now: datetime) -> list[Any]:
    ready = f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"
    return [_name(obj), ready, _age(obj, now), *_containers(obj, "spec", "template")]


def _daemon_set(obj: JSON, now: datetime) -> list[Any]:
    return [
        _name(obj),
        number(obj, "status", "desiredNumberScheduled"),
        number(obj, "status", "currentNumberScheduled"),
        number(obj, "status", "numberReady"),
        number(obj, "status", "updatedNumberScheduled"),
        number(obj, "status", "numberAvailable"),
        _labels(mapping(obj, "spec", "template", "spec", "nodeSelector")),
        _age(obj, now),
        *_containers(obj, "spec", "template"),
        selector_text(at(obj, "spec", "selector")),
    ]


def _revision(obj: JSON, now: datetime) -> list[Any]:
    owner = next((o for o in objects(obj, "metadata", "ownerReferences") if o.get("controller") is True), None)
    shown = NONE
    if owner is not None:
        group = text(owner, "apiVersion").rpartition("/")[0]
        kind = text(owner, "kind").lower()
        shown = f"{kind}.{group}/{text(owner, 'name')}" if group else f"{kind}/{text(owner, 'name')}"
    return [_name(obj), shown, number(obj, "revision"), _age(obj, now)]


_JOB_STATES: Final = (
    ("Complete", "Complete"),
    ("Failed", "Failed"),
    ("", "Terminating"),
    ("Suspended", "Suspended"),
    ("FailureTarget", "FailureTarget"),
    ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)


def _job(obj: JSON, now: datetime) -> list[Any]:
    succeeded, parallelism = number(obj, "status", "succeeded"), number(obj, "spec", "parallelism")
    wanted = at(obj, "spec", "completions")
    completions = f"{succeeded}/{wanted}" if wanted is not None else f"{succeeded}/1"
    if wanted is None and parallelism > 1:
        completions = f"{succeeded}/1 of {parallelism}"
    started, ended = moment(obj, "status", "startTime"), moment(obj, "status", "completionTime")
    conditions = objects(obj, "status", "conditions")
    deleting = at(obj, "metadata", "deletionTimestamp") is not None
    state = next(
        (s for kind, s in _JOB_STATES if (condition(conditions, kind) == "True" if kind else deleting)), "Running"
    )
    return [
        _name(obj),
        state,
        completions,
        human_duration((ended or now) - started) if started is not None else "",
        _age(obj, now),
        *_containers(obj, "spec", "template"),
        selector_text(at(obj, "spec", "selector")),
    ]


def _cron_job(obj: JSON, now: datetime) -> list[Any]:
    last = moment(obj, "status", "lastScheduleTime")
    suspended = at(obj, "spec", "suspend")
    return [
        _name(obj),
        text(obj, "spec", "schedule"),
        _or_none(text(obj, "spec", "timeZone")),
        UNSET if suspended is None else "True" if suspended else "False",
        len(objects(obj, "status", "active")),
        age(last, now) if last is not None else NONE,
        _age(obj, now),
        *_containers(obj, "spec", "jobTemplate", "spec", "template"),
        selector_text(at(obj, "spec", "jobTemplate", "spec", "selector")),
    ]


def _disruption_budget(obj: JSON, now: datetime) -> list[Any]:
    shown = ["N/A" if (v := at(obj, "spec", f)) is None else str(v) for f in ("minAvailable", "maxUnavailable")]
    return [_name(obj), *shown, number(obj, "status", "disruptionsAllowed"), _age(obj, now)]


# -- storage, scheduling, networking, access ------------------------------------------------------------------
def _marked_default(obj: JSON, *annotations: str) -> str:
    found = mapping(obj, "metadata", "annotations")
    return f"{_name(obj)} (default)" if any(found.get(key) == "true" for key in annotations) else _name(obj)


def _storage_class_row(obj: JSON, now: datetime) -> list[Any]:
    prefix = "kubernetes.io/is-default-class"
    return [
        _marked_default(obj, f"storageclass.{prefix}", f"storageclass.beta.{prefix}"),
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy") or "Delete",
        text(obj, "volumeBindingMode") or "Immediate",
        obj.get("allowVolumeExpansion") is True,
        _age(obj, now),
    ]


def _csi_driver(obj: JSON, now: datetime) -> list[Any]:
    spec = mapping(obj, "spec")
    tokens = spec.get("tokenRequests")
    return [
        _name(obj),
        spec.get("attachRequired") is not False,
        spec.get("podInfoOnMount") is True,
        spec.get("storageCapacity") is True,
        UNSET if tokens is None else ",".join(text(token, "audience") for token in objects(spec, "tokenRequests")),
        spec.get("requiresRepublish") is True,
        _or_none(",".join(texts(spec, "volumeLifecycleModes"))),
        _age(obj, now),
    ]


def _attachment(obj: JSON, now: datetime) -> list[Any]:
    return [
        _name(obj),
        text(obj, "spec", "attacher"),
        text(obj, "spec", "source", "persistentVolumeName"),
        text(obj, "spec", "nodeName"),
        at(obj, "status", "attached") is True,
        _age(obj, now),
    ]


def _priority_class(obj: JSON, now: datetime) -> list[Any]:
    return [
        _name(obj),
        number(obj, "value"),
        obj.get("globalDefault") is True,
        _age(obj, now),
        text(obj, "preemptionPolicy"),
    ]


def _endpoint_slice(obj: JSON, now: datetime) -> list[Any]:
    ports = [str(p["port"]) if p.get("port") is not None else text(p, "name") or "*" for p in objects(obj, "ports")]
    addresses = [address for endpoint in objects(obj, "endpoints") for address in texts(endpoint, "addresses")]
    return [
        _name(obj),
        text(obj, "addressType"),
        _first_few(ports) if ports else UNSET,
        _first_few(addresses) if addresses else UNSET,
        _age(obj, now),
    ]


def _ingress(obj: JSON, now: datetime) -> list[Any]:
    rules = objects(obj, "spec", "rules")
    hosts = [text(rule, "host") for rule in rules if text(rule, "host")]
    annotated = text(obj, "metadata", "annotations", "kubernetes.io/ingress.class")
    return [
        _name(obj),
        text(obj, "spec", "ingressClassName") or annotated or NONE,
        _first_few(hosts, len(rules)) if hosts else "*",
        _ingress_addresses(obj),
        "80, 443" if objects(obj, "spec", "tls") else "80",
        _age(obj, now),
    ]


def _ingress_class(obj: JSON, now: datetime) -> list[Any]:
    parameters = mapping(obj, "spec", "parameters")
    group = text(parameters, "apiGroup")
    kind = f"{text(parameters, 'kind')}.{group}" if group else text(parameters, "kind")
    name = _marked_default(obj, "ingressclass.kubernetes.io/is-default-class")
    shown = f"{kind}/{text(parameters, 'name')}" if parameters else NONE
    return [name, text(obj, "spec", "controller"), shown, _age(obj, now)]


def _binding(obj: JSON, now: datetime) -> list[Any]:
    subjects = objects(obj, "subjects")
    by_kind = {
        kind: ", ".join(text(s, "name") for s in subjects if s.get("kind") == kind) for kind in ("User", "Group")
    }
    accounts = [f"{text(s, 'namespace')}/{text(s, 'name')}" for s in subjects if s.get("kind") == "ServiceAccount"]
    role = mapping(obj, "roleRef")
    return [
        _name(obj),
        f"{text(role, 'kind')}/{text(role, 'name')}",
        _age(obj, now),
        by_kind["User"],
        by_kind["Group"],
        ", ".join(accounts),
    ]


def _resource_claim(obj: JSON, now: datetime) -> list[Any]:
    deleted = at(obj, "metadata", "deletionTimestamp") is not None
    allocated = isinstance(at(obj, "status", "allocation"), dict)
    states = ["deleted"] if deleted else []
    if allocated:
        states += ["allocated", *(["reserved"] if objects(obj, "status", "reservedFor") else [])]
    elif not deleted:
        states.append("pending")
    return [_name(obj), ",".join(states), _age(obj, now)]


def _capacity(obj: JSON, now: datetime) -> list[Any]:
    amount = obj.get("capacity")
    return [_name(obj), text(obj, "storageClassName"), _quantity(amount) if amount is not None else UNSET]


def _resource_slice(obj: JSON, now: datetime) -> list[Any]:
    spec = mapping(obj, "spec")
    return [_name(obj), text(spec, "nodeName"), text(spec, "driver"), text(spec, "pool", "name"), _age(obj, now)]


def _counted(*path: str) -> Cells:
    return lambda obj, now: [_name(obj), len(objects(obj, *path)), _age(obj, now)]


def _with_text(*path: str) -> Cells:
    return lambda obj, now: [_name(obj), text(obj, *path), _age(obj, now)]


def _network_policy(obj: JSON, now: datetime) -> list[Any]:
    return [_name(obj), selector_text(at(obj, "spec", "podSelector")), _age(obj, now)]


_TEMPLATE: Final = "Containers!, Images!"
_WEBHOOKS: Final = ("Webhooks:integer, Age", _counted("webhooks"))
_BINDINGS: Final = ("Role, Age, Users!, Groups!, ServiceAccounts!", _binding)
_EVENTS: Final = ("Last Seen, Type, Reason, Object, Subobject!, Source!, Message, First Seen!, Count!, Name!", _event)
_SCALED: Final = f"Desired:integer, Current:integer, Ready:integer, Age, {_TEMPLATE}, Selector!"

PRINTERS: Final[Mapping[tuple[str, str], tuple[str, Cells]]] = {
    ("", "Pod"): (
        "Ready, Status, Restarts, Age, IP!, Node!, Nominated Node!, Readiness Gates!",
        pod_cells,
    ),
    ("", "PodTemplate"): ("Containers, Images, Pod Labels", _pod_template),
    ("", "ReplicationController"): (_SCALED, _replicas),
    ("", "Service"): ("Type, Cluster-IP, External-IP, Port(s), Age, Selector!", _service),
    ("", "Namespace"): ("Status, Age", _namespace),
    ("", "Node"): (
        "Status, Roles, Age, Version, Internal-IP!, External-IP!, OS-Image!, Kernel-Version!, Container-Runtime!",
        _node,
    ),
    ("", "ConfigMap"): ("Data, Age", _config_map),
    ("", "Secret"): ("Type, Data, Age", _secret),
    ("", "ServiceAccount"): ("Age", _aged),
    ("", "Endpoints"): ("Endpoints, Age", _endpoints),
    ("", "PersistentVolume"): (
        "Capacity, Access Modes, Reclaim Policy, Status, Claim, StorageClass, VolumeAttributesClass, Reason, Age, "
        "VolumeMode!",
        _volume,
    ),
    ("", "PersistentVolumeClaim"): (
        "Status, Volume, Capacity, Access Modes, StorageClass, VolumeAttributesClass, Age, VolumeMode!",
        _claim,
    ),
    ("", "Event"): _EVENTS,
    ("events.k8s.io", "Event"): _EVENTS,
    ("", "ResourceQuota"): ("Request, Limit, Age", _quota),
    ("apps", "Deployment"): (f"Ready, Up-to-date, Available, Age, {_TEMPLATE}, Selector!", _deployment),
    ("apps", "ReplicaSet"): (_SCALED, _replicas),
    ("apps", "StatefulSet"): (f"Ready, Age, {_TEMPLATE}", _stateful_set),
    ("apps", "DaemonSet"): (
        "Desired:integer, Current:integer, Ready:integer, Up-to-date:integer, Available:integer, Node Selector, Age, "
        f"{_TEMPLATE}, Selector!",
        _daemon_set,
    ),
    ("apps", "ControllerRevision"): ("Controller, Revision, Age", _revision),
    ("batch", "Job"): (f"Status, Completions, Duration, Age, {_TEMPLATE}, Selector!", _job),
    ("batch", "CronJob"): (
        f"Schedule, Timezone, Suspend:boolean, Active:integer, Last Schedule, Age, {_TEMPLATE}, Selector!",
        _cron_job,
    ),
    ("policy", "PodDisruptionBudget"): (
        "Min Available, Max Unavailable, Allowed Disruptions:integer, Age",
        _disruption_budget,
    ),
    ("scheduling.k8s.io", "PriorityClass"): (
        "Value:integer, Global-Default:boolean, Age, PreemptionPolicy",
        _priority_class,
    ),
    ("storage.k8s.io", "StorageClass"): (
        "Provisioner, ReclaimPolicy, VolumeBindingMode, AllowVolumeExpansion, Age",
        _storage_class_row,
    ),
    ("storage.k8s.io", "CSIDriver"): (
        "AttachRequired:boolean, PodInfoOnMount:boolean, StorageCapacity:boolean, TokenRequests, "
        "RequiresRepublish:boolean, Modes, Age",
        _csi_driver,
    ),
    ("storage.k8s.io", "CSINode"): ("Drivers:integer, Age", _counted("spec", "drivers")),
    ("storage.k8s.io", "VolumeAttachment"): ("Attacher, PV, Node, Attached:boolean, Age", _attachment),
    ("storage.k8s.io", "CSIStorageCapacity"): ("StorageClassName, Capacity", _capacity),
    ("coordination.k8s.io", "Lease"): ("Holder, Age", _with_text("spec", "holderIdentity")),
    ("discovery.k8s.io", "EndpointSlice"): ("AddressType, Ports, Endpoints, Age", _endpoint_slice),
    ("networking.k8s.io", "NetworkPolicy"): ("Pod-Selector, Age", _network_policy),
    ("networking.k8s.io", "Ingress"): ("Class, Hosts, Address, Ports, Age", _ingress),
    ("networking.k8s.io", "IngressClass"): ("Controller, Parameters, Age", _ingress_class),
    ("rbac.authorization.k8s.io", "RoleBinding"): _BINDINGS,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): _BINDINGS,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("resource.k8s.io", "ResourceClaim"): ("State, Age", _resource_claim),
    ("resource.k8s.io", "ResourceClaimTemplate"): ("Age", _aged),
    ("resource.k8s.io", "DeviceClass"): ("Age", _aged),
    ("resource.k8s.io", "ResourceSlice"): ("Node, Driver, Pool, Age", _resource_slice),
}
"""Kind → its columns after the name (`!` marks wide ones, a type follows a colon) and the function of its cells."""
