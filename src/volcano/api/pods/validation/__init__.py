"""Pods and pod templates, checked as the API server checks them: same verdicts, paths and messages (Kubernetes 1.36).

Core defaults count as applied: what the server would fill in may be missing. Privileged mode is permitted. Objects of
any shape may be given; what has the wrong type is an error like any other.
"""

from __future__ import annotations

from typing import Any

from volcano.api import names
from volcano.api.errors import FieldError
from volcano.api.fields import Field
from volcano.api.pods.validation.annotations import check_known_annotations, check_profiles_agree
from volcano.api.pods.validation.containers import Surroundings, check_containers
from volcano.api.pods.validation.labels import check_annotations, check_labels
from volcano.api.pods.validation.network import check_dns, check_host_names, check_host_network
from volcano.api.pods.validation.placement import check_affinity, check_gates, check_spread, check_tolerations
from volcano.api.pods.validation.resources import check_overhead, check_pod_requirements
from volcano.api.pods.validation.security import check_host_users, check_pod_security
from volcano.api.pods.validation.systems import check_system
from volcano.api.pods.validation.volumes import check_volumes

DEFAULT_GRACE = 30
MAX_INT32 = 2**31 - 1


def validate_pod_template(template: Any, path: str) -> list[FieldError]:
    """Labels, annotations and spec of a pod template, such as a task's."""
    field = Field(template, path)
    if not isinstance(template, dict):
        field.is_no("an object")
        return field.errors
    metadata = Field(template.get("metadata"), path, field.errors)
    check_labels(metadata, "labels")
    annotations = check_annotations(metadata, "annotations")
    spec = field.at("spec")
    check_known_annotations(annotations, metadata.at("annotations"), spec)
    _check_spec(spec, is_pod=False)
    check_profiles_agree(annotations, spec)
    if spec.each("ephemeralContainers"):
        spec.at("ephemeralContainers").forbidden("ephemeral containers not allowed in pod template")
    return _once(field.errors)


def validate_pod_spec(spec: Any, path: str, *, is_pod: bool = True, is_new: bool = True) -> list[FieldError]:
    """The spec of a pod that is being created; of a template's with `is_pod=False`, of one that exists otherwise."""
    field = Field(spec, path)
    if not isinstance(spec, dict):
        field.is_no("an object")
        return field.errors
    _check_spec(field, is_pod=is_pod)
    if is_pod and is_new:
        if field.each("ephemeralContainers"):
            field.at("ephemeralContainers").forbidden("cannot be set on create")
        if field.text("nodeName") and field.each("schedulingGates"):
            field.at("nodeName").forbidden("cannot be set until all schedulingGates have been cleared")
    return _once(field.errors)


def validate_pod_annotations(annotations: Any, spec: Any, path: str) -> list[FieldError]:
    """The annotations of a pod that mean something to Kubernetes, together with its spec."""
    errors: list[FieldError] = []
    owner = Field({"annotations": annotations}, "", errors)
    place, inside = Field(annotations, path, errors), Field(spec, "spec", errors)
    found = {key: entry.as_text() for key, entry in owner.entries("annotations")}
    check_known_annotations(found, place, inside)
    check_profiles_agree(found, inside)
    return _once(errors)


def _check_spec(spec: Field, *, is_pod: bool) -> None:
    volumes = check_volumes(spec)
    claims = _check_claims(spec)
    grace = spec.number("terminationGracePeriodSeconds", DEFAULT_GRACE)
    around = Surroundings(
        volumes=volumes,
        claims=claims,
        grace=grace,
        os_name=spec.at("os").text("name") if spec.has("os") else None,
        restart_policy=spec.text("restartPolicy") or "Always",
        host_users=spec.at("hostUsers").as_truth() is not False,
        is_pod=is_pod,
    )
    check_containers(spec, around)
    check_pod_requirements(spec, claims)
    check_host_network(spec)
    spec.at("restartPolicy").one_of("Always", "OnFailure", "Never")
    check_labels(spec, "nodeSelector")
    check_pod_security(spec)
    check_affinity(spec.at("affinity"))
    check_dns(spec)
    check_gates(spec)
    check_spread(spec)
    check_host_users(spec)
    check_host_names(spec)
    check_tolerations(spec.each("tolerations"))
    check_overhead(spec)
    check_system(spec)
    _check_names(spec)
    _check_deadline(spec)
    _check_file_volumes(spec)


def _check_names(spec: Field) -> None:
    for name in ("serviceAccountName", "nodeName", "priorityClassName"):
        if text := spec.text(name):
            spec.at(name).check(names.subdomain_problems(text))
    runtime = spec.at("runtimeClassName")
    if runtime.is_set:
        for problem in names.subdomain_problems(runtime.as_text()):
            runtime.invalid(problem, runtime.as_text())
    if spec.has("preemptionPolicy") and not spec.text("preemptionPolicy"):
        spec.at("preemptionPolicy").required()
    spec.at("preemptionPolicy").one_of("PreemptLowerPriority", "Never")
    if spec.has("schedulingGroup"):
        group = spec.at("schedulingGroup", "podGroupName")
        if not group.is_set:
            group.invalid("must specify one of: `podGroupName`")
        else:
            for problem in names.subdomain_problems(group.as_text()):
                group.invalid(problem, group.as_text())


def _check_deadline(spec: Field) -> None:
    place = spec.at("activeDeadlineSeconds")
    seconds = place.as_number()
    if seconds is not None:
        place.check(names.range_problems(seconds, 1, MAX_INT32))


def _check_claims(spec: Field) -> frozenset[str]:
    """Resource claims of the pod; the names that containers may use."""
    used: set[str] = set()
    for claim in spec.each("resourceClaims"):
        name = claim.text("name")
        if not name:
            claim.at("name").required()
        elif name in used:
            claim.at("name").duplicate()
        else:
            claim.at("name").check(names.dns_label_problems(name))
            used.add(name)
        given = [kind for kind in ("resourceClaimName", "resourceClaimTemplateName") if claim.has(kind)]
        if len(given) == 2:
            claim.invalid("at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified")
        if not given:
            claim.invalid("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`")
        for kind in given:
            for problem in names.subdomain_problems(claim.text(kind)):
                claim.at(kind).invalid(problem)
    return frozenset(used)


def _check_file_volumes(spec: Field) -> None:
    """A variable may be read from a file only of a volume that lives and dies with the pod."""
    sources = {volume.text("name"): volume for volume in spec.each("volumes")}
    for container in (*spec.each("initContainers"), *spec.each("containers")):
        for variable in container.each("env"):
            place = variable.at("valueFrom", "fileKeyRef")
            if not place.is_set:
                continue
            name = place.text("volumeName")
            others = [key for key in (sources[name].value or {}) if key != "name"] if name in sources else []
            if name not in sources:
                place.at("volumeName").not_found(name)
            elif others and "emptyDir" not in others:
                place.at("volumeName").invalid("referenced volume must be of type emptyDir")


def _once(errors: list[FieldError]) -> list[FieldError]:
    """Rules that look at the same value from two sides note a wrong type twice; say it once."""
    return list(dict.fromkeys(errors))
