"""Containers of a pod: regular, init (sidecars among them) and ephemeral ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from volcano.api import names
from volcano.api.fields import Field
from volcano.api.pods.validation.environment import check_env
from volcano.api.pods.validation.mounts import check_devices, check_mounts
from volcano.api.pods.validation.probes import check_lifecycle, check_probes
from volcano.api.pods.validation.resources import check_container_requirements
from volcano.api.pods.validation.security import check_container_security

PROTOCOLS: Final = ("SCTP", "TCP", "UDP")
RESTARTS: Final = ("Always", "Never", "OnFailure")
RULE_ACTIONS: Final = ("Restart", "RestartAllContainers")
ONLY_SIDECARS: Final = ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe")
EPHEMERAL_FIELDS: Final = frozenset(
    {
        "name", "image", "command", "args", "workingDir", "envFrom", "env", "volumeMounts", "volumeDevices",
        "terminationMessagePath", "terminationMessagePolicy", "imagePullPolicy", "securityContext", "stdin",
        "stdinOnce", "tty", "targetContainerName",
    }
)  # fmt: skip


class Surroundings(msgspec.Struct, frozen=True):
    """What a container's rules need to know of its pod."""

    volumes: Mapping[str, Field]
    claims: frozenset[str]
    grace: int
    os_name: str | None
    restart_policy: str
    host_users: bool
    is_pod: bool


def check_containers(spec: Field, around: Surroundings) -> None:
    if not spec.each("containers"):
        spec.at("containers").required()
    used: set[str] = set()
    for container in spec.each("containers"):
        _check_one(container, around)
        if container.text("name") in used:
            container.at("name").duplicate()
        used.add(container.text("name"))
        if container.has("lifecycle"):
            check_lifecycle(container.at("lifecycle"), around.grace, around.os_name)
        check_probes(container, around.grace)
        _check_restart_rules(container)
    _check_host_ports(spec.each("containers"))
    for container in spec.each("initContainers"):
        _check_init_container(container, around, used)
    for container in spec.each("ephemeralContainers"):
        _check_ephemeral_container(container, around, used)


def _check_one(container: Field, around: Surroundings) -> None:
    name, image = container.text("name"), container.text("image")
    if not name:
        container.at("name").required()
    else:
        container.at("name").check(names.dns_label_problems(name))
    if not image:
        container.at("image").required()
    elif around.is_pod and image != image.strip():
        container.at("image").invalid("must not have leading or trailing whitespace")
    container.at("terminationMessagePolicy").one_of("File", "FallbackToLogsOnError")
    _check_ports(container)
    check_env(container)
    check_mounts(container, around.volumes)
    check_devices(container, around.volumes)
    container.at("imagePullPolicy").one_of("Always", "IfNotPresent", "Never")
    check_container_requirements(container, around.claims)
    _check_resize_policy(container, around.restart_policy)
    check_container_security(container.at("securityContext"), host_users=around.host_users)


def _check_init_container(container: Field, around: Surroundings, used: set[str]) -> None:
    _check_one(container, around)
    _check_restart_rules(container)
    name = container.text("name")
    if name in used:
        container.at("name").duplicate(name)
    elif name:
        used.add(name)
    _check_host_ports([container])
    is_sidecar = container.text("restartPolicy") == "Always"
    if is_sidecar:
        if container.has("lifecycle"):
            check_lifecycle(container.at("lifecycle"), around.grace, around.os_name)
        check_probes(container, around.grace)
        return
    for field in ONLY_SIDECARS:
        if container.has(field):
            container.at(field).forbidden("may not be set for init containers without restartPolicy=Always")
    for policy in container.each("resizePolicy"):
        if policy.text("restartPolicy") == "RestartContainer":
            policy.at("restartPolicy").invalid("must not be set to 'RestartContainer' for non-sidecar initContainers")


def _check_ephemeral_container(container: Field, around: Surroundings, used: set[str]) -> None:
    _check_one(container, around)
    name, target = container.text("name"), container.text("targetContainerName")
    if name in used:
        container.at("name").duplicate(name)
    if target and target not in used:
        container.at("targetContainerName").not_found()
    for field in sorted(container.value) if isinstance(container.value, dict) else ():
        if field not in EPHEMERAL_FIELDS and container.value[field]:
            container.at(str(field)).forbidden("cannot be set for an Ephemeral Container")
    for mount in container.each("volumeMounts"):
        for field in ("subPath", "subPathExpr"):
            if mount.text(field):
                mount.at(field).forbidden("cannot be set for an Ephemeral Container")


def _check_ports(container: Field) -> None:
    used: set[str] = set()
    for port in container.each("ports"):
        name, number = port.text("name"), port.number("containerPort")
        if name:
            problems = names.port_name_problems(name)
            port.at("name").check(problems)
            if not problems and name in used:
                port.at("name").duplicate()
            used.add(name)
        if not number:
            port.at("containerPort").required()
        else:
            port.at("containerPort").check(names.port_number_problems(number))
        if host_port := port.number("hostPort"):
            port.at("hostPort").check(names.port_number_problems(host_port))
        port.at("protocol").one_of(*PROTOCOLS)


def _check_host_ports(containers: list[Field]) -> None:
    used: set[str] = set()
    for container in containers:
        for port in container.each("ports"):
            if not (number := port.number("hostPort")):
                continue
            key = f"{port.text('protocol') or 'TCP'}/{port.text('hostIP')}/{number}"
            if key in used:
                port.at("hostPort").duplicate(key)
            used.add(key)


def _check_resize_policy(container: Field, pod_restart_policy: str) -> None:
    everything, used = container.at("resizePolicy"), set[str]()
    for policy in container.each("resizePolicy"):
        resource, restart = policy.text("resourceName"), policy.text("restartPolicy")
        if resource in used:
            policy.duplicate(resource)
        used.add(resource)
        for value, choices in ((resource, ("cpu", "memory")), (restart, ("NotRequired", "RestartContainer"))):
            if not value:
                everything.required()
            elif value not in choices:
                Field(value, everything.path, everything.errors).unsupported(choices)
        if pod_restart_policy == "Never" and restart != "NotRequired":
            everything.invalid("must be 'NotRequired' when pod `restartPolicy` is 'Never'", restart)


def _check_restart_rules(container: Field) -> None:
    rules, policy = container.each("restartPolicyRules"), container.at("restartPolicy")
    if not policy.is_set:
        if rules:
            policy.required("must specify restartPolicy when restart rules are used")
    elif policy.as_text() not in RESTARTS:
        policy.unsupported(RESTARTS)
    if len(rules) > 20:
        container.at("restartPolicyRules").too_many(len(rules), 20)
    for rule in rules:
        if rule.text("action") not in RULE_ACTIONS:
            Field(rule.text("action"), rule.at("action").path, rule.errors).unsupported(RULE_ACTIONS)
        codes = rule.at("exitCodes")
        if not codes.is_set:
            codes.required("must be specified")
            continue
        if codes.text("operator") not in ("In", "NotIn"):
            Field(codes.text("operator"), codes.at("operator").path, rule.errors).unsupported(("In", "NotIn"))
        if len(codes.each("values")) > 255:
            codes.at("values").too_many(len(codes.each("values")), 255)
