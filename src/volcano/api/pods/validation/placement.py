"""Where a pod may run: node and pod affinity, tolerations, topology spread, scheduling gates."""

from __future__ import annotations

import re
from typing import Final

from volcano.api import names
from volcano.api.fields import Field
from volcano.api.pods.validation.labels import check_label_key, check_label_selector

EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def check_affinity(affinity: Field) -> None:
    node = affinity.at("nodeAffinity")
    if node.has(REQUIRED):
        terms = node.at(REQUIRED).each("nodeSelectorTerms")
        if not terms:
            node.at(REQUIRED, "nodeSelectorTerms").required("must have at least one node selector term")
        for term in terms:
            _check_node_term(term, checks_values=True)
    for preference in node.each(PREFERRED):
        _check_weight(preference)
        _check_node_term(preference.at("preference"), checks_values=False)
    for kind in ("podAffinity", "podAntiAffinity"):
        for term in affinity.at(kind).each(REQUIRED):
            _check_pod_term(term)
        for preference in affinity.at(kind).each(PREFERRED):
            _check_weight(preference)
            _check_pod_term(preference.at("podAffinityTerm"))


def check_tolerations(tolerations: list[Field]) -> None:
    for toleration in tolerations:
        key, operator, value = (toleration.text(name) for name in ("key", "operator", "value"))
        effect = toleration.text("effect")
        if key:
            check_label_key(toleration.at("key"))
        elif operator != "Exists":
            toleration.at("operator").invalid(
                'operator must be Exists when `key` is empty, which means "match all values and all keys"', operator
            )
        if toleration.has("tolerationSeconds") and effect != "NoExecute":
            toleration.at("effect").invalid("effect must be 'NoExecute' when `tolerationSeconds` is set", effect)
        _check_operator(toleration, operator, value)
        toleration.at("effect").one_of(*EFFECTS)


def check_spread(spec: Field) -> None:
    constraints = spec.each("topologySpreadConstraints")
    seen = [(c.text("topologyKey"), c.text("whenUnsatisfiable")) for c in constraints]
    last = {pair: index for index, pair in enumerate(seen)}
    for i, constraint in enumerate(constraints):
        key, action = seen[i]
        if constraint.number("maxSkew") <= 0:
            constraint.at("maxSkew").invalid("must be greater than zero", constraint.number("maxSkew"))
        if not key:
            constraint.at("topologyKey").required("can not be empty")
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            place = constraint.at("whenUnsatisfiable")
            Field(action, place.path, place.errors).unsupported(("DoNotSchedule", "ScheduleAnyway"))
        if last[seen[i]] > i:
            constraint.at("{topologyKey, whenUnsatisfiable}").duplicate(f"{{{key}, {action}}}")
        _check_domains(constraint, action)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.has(name) and constraint.text(name) not in ("Honor", "Ignore"):
                constraint.at(name).unsupported(("Honor", "Ignore"))
        _check_label_keys(constraint, ("matchLabelKeys",))
        check_label_selector(constraint.at("labelSelector"))


def check_gates(spec: Field) -> None:
    for gate in spec.each("readinessGates"):
        place, kind = gate.at("conditionType"), gate.text("conditionType")
        for problem in names.qualified_name_problems(kind):
            place.invalid(problem, kind)
    used: set[str] = set()
    for gate in spec.each("schedulingGates"):
        name = gate.text("name")
        for problem in names.qualified_name_problems(name):
            gate.invalid(problem, name)
        if name in used:
            gate.duplicate(name)
        used.add(name)


def _check_weight(preference: Field) -> None:
    weight = preference.number("weight")
    if not 1 <= weight <= 100:
        preference.at("weight").invalid("must be in the range 1-100", weight)


def _check_node_term(term: Field, *, checks_values: bool) -> None:
    for requirement in term.each("matchExpressions"):
        operator, values = requirement.text("operator"), requirement.texts("values")
        at = requirement.at("values")
        match operator:
            case "In" | "NotIn":
                if not values:
                    at.required("must be specified when `operator` is 'In' or 'NotIn'")
            case "Exists" | "DoesNotExist":
                if values:
                    at.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
            case "Gt" | "Lt":
                if len(values) != 1:
                    at.required("must be specified single value when `operator` is 'Lt' or 'Gt'")
            case _:
                requirement.at("operator").invalid("not a valid selector operator", operator)
        check_label_key(requirement.at("key"))
        for value in requirement.each("values") if checks_values else ():
            value.check(names.label_value_problems(value.as_text()))
    for requirement in term.each("matchFields"):
        _check_node_field(requirement)


def _check_node_field(requirement: Field) -> None:
    operator, key = requirement.text("operator"), requirement.text("key")
    if operator not in ("In", "NotIn"):
        requirement.at("operator").invalid("not a valid selector operator", operator)
    elif len(requirement.texts("values")) != 1:
        requirement.at("values").required(
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        )
    if key != "metadata.name":
        requirement.at("key").invalid("not a valid field selector key", key)
        return
    for value in requirement.each("values"):
        for problem in names.subdomain_problems(value.as_text()):
            value.invalid(problem)


def _check_pod_term(term: Field) -> None:
    check_label_selector(term.at("labelSelector"))
    check_label_selector(term.at("namespaceSelector"))
    for namespace in term.texts("namespaces"):
        for problem in names.dns_label_problems(namespace):
            term.at("namespace").invalid(problem, namespace)
    _check_label_keys(term, ("matchLabelKeys", "mismatchLabelKeys"))
    if not term.text("topologyKey"):
        term.at("topologyKey").required("can not be empty")
    check_label_key(term.at("topologyKey"))


def _check_label_keys(owner: Field, lists: tuple[str, ...]) -> None:
    """Keys whose values are looked up in the pod: only with a selector, and not named by it already."""
    for name in lists:
        places = owner.each(name)
        if places and not owner.has("labelSelector"):
            owner.at(name).forbidden("must not be specified when labelSelector is not set")
            continue
        for place in places:
            check_label_key(place)
    match = owner.texts("matchLabelKeys")
    selector = owner.at("labelSelector")
    selected = {key for key, _ in selector.entries("matchLabels")}
    for requirement in selector.each("matchExpressions"):
        key = requirement.text("key")
        if key in match and key in selected:
            owner.index(match.index(key)).invalid("exists in both matchLabelKeys and labelSelector", key)
        selected.add(key)
    mismatch = owner.texts("mismatchLabelKeys") if "mismatchLabelKeys" in lists else []
    for place in owner.each("matchLabelKeys"):
        if place.value in mismatch:
            place.invalid("exists in both matchLabelKeys and mismatchLabelKeys")


def _check_domains(constraint: Field, action: str) -> None:
    place = constraint.at("minDomains")
    number = place.as_number()
    if number is None:
        return
    if number <= 0:
        place.invalid("must be greater than zero")
    if action != "DoNotSchedule":
        place.invalid(f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}")


def _check_operator(toleration: Field, operator: str, value: str) -> None:
    place = toleration.at("operator")
    match operator:
        case "Equal" | "":
            if problems := names.label_value_problems(value):
                place.invalid(";".join(problems), value)
        case "Exists":
            if value:
                place.invalid("value must be empty when `operator` is 'Exists'", value)
        case "Lt" | "Gt":
            if not re.fullmatch(r"0|-?[1-9][0-9]{0,18}", value):
                toleration.at("value").invalid("must be a valid integer", value)
        case _:
            place.unsupported(("Equal", "Exists"))
