"""Volcano's admission rules as CEL, as far as a policy can see: one object, no others.

Only texts: policies.py makes manifests of them. A rule is a condition that must hold and the message when it does not;
names after `variables.` are defined beside the rules, once per policy. Jobs have a file of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Final, NamedTuple

from volcano.api.jobs.estimates import ESTIMATE_KEY, ESTIMATE_RULE, MAX_ESTIMATE
from volcano.api.pods.validation.resources import COUNTED


class Rule(NamedTuple):
    """What must hold, and the message when it does not."""

    expression: str
    message: str


def listed(words: tuple[str, ...]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


def given(path: str, otherwise: str) -> str:
    """A field, or the default that its absence means."""
    return f"(has({path}) ? {path} : {otherwise})"


SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
QUALIFIED: Final = "^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$"
DURATION: Final = r"(([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+"
NOTHING: Final = "quantity('0')"
EXTENDED: Final = "(r.contains('/') && !r.contains('kubernetes.io/') && !r.startsWith('requests.'))"
"""Whether `r` is the name of an extended resource."""
MAX_GRAPH_LAYERS: Final = 16
"""How many layers of a graph are taken off to find what is left: a cycle, and what waits for it."""


def not_negative(holder: str, field: str, path: str) -> Rule:
    return Rule(f"!has({holder}.{field}) || {holder}.{field} >= 0", f"{path} should be greater than or equal to 0")


def acceptable_estimate(text: str) -> str:
    """Whether a text is an estimate that is accepted."""
    most = f"duration('{MAX_ESTIMATE // timedelta(hours=1)}h')"
    return f"({text}.matches('^[+]?{DURATION}$') && duration({text}) > duration('0s') && duration({text}) <= {most})"


def estimate_annotation() -> Rule:
    holder = "object.metadata.annotations"
    stated = f"{holder}['{ESTIMATE_KEY}']"
    return Rule(
        f"!has({holder}) || !('{ESTIMATE_KEY}' in {holder}) || {acceptable_estimate(stated)}",
        f"metadata.annotations[{ESTIMATE_KEY}]: Invalid value: {ESTIMATE_RULE}",
    )


def amount(text: str) -> str:
    return f"quantity(string({text}))"


def has_whole_amount(text: str) -> str:
    """Whether a quantity is an integer: `2000m` is."""
    return f"{amount(text)}.asApproximateFloat() == double(int({amount(text)}.asApproximateFloat()))"


def one_tier(topology: str) -> str:
    """A topology constraint names its tier by number or by name, not by both."""
    name = f"has({topology}.highestTierName) && {topology}.highestTierName != ''"
    return f"!(has({topology}.highestTierAllowed) && {name})"


def both_tiers(where: str) -> str:
    return f"must not specify 'highestTierAllowed' and 'highestTierName' in {where} simultaneously"


def layers(nodes: str, targets: str) -> dict[str, str]:
    """Variables `startable0`, `startable1` …: names whose targets are all in the layers before.

    `nodes` is a list and `targets` an expression over its element `n`. When a layer adds nothing, what is not in it is
    a cycle, or depends on one. A deeper graph passes.
    """
    found = {"startable0": f"{nodes}.filter(n, {targets}.size() == 0).map(n, n.name)"}
    for depth in range(1, MAX_GRAPH_LAYERS + 1):
        before = f"variables.startable{depth - 1}"
        found[f"startable{depth}"] = f"{nodes}.filter(n, {targets}.all(t, t in {before})).map(n, n.name)"
    return found


def has_no_cycle(nodes: str) -> str:
    last, before = f"variables.startable{MAX_GRAPH_LAYERS}.size()", f"variables.startable{MAX_GRAPH_LAYERS - 1}.size()"
    return f"{last} == {nodes}.size() || {last} > {before}"


# -- Queue --------------------------------------------------------------------------------------------------------
_DELETED: Final = "request.operation == 'DELETE'"


def _amounts(holder: str) -> dict[str, str]:
    """capability, deserved and guarantee of a queue, empty where they are not given."""
    guarantee = f"has({holder}.guarantee) && has({holder}.guarantee.resource) ? {holder}.guarantee.resource"
    return {
        "capability": f"has({holder}.capability) ? {holder}.capability : {{}}",
        "deserved": f"has({holder}.deserved) ? {holder}.deserved : {{}}",
        "guarantee": f"{guarantee} : {{}}",
    }


_OWN: Final = {name: f"{_DELETED} ? {{}} : ({value})" for name, value in _amounts("object.spec").items()}
_UPDATED_ROOT: Final = "request.operation == 'UPDATE' && object.metadata.name == 'root'"
_OLD: Final = {
    f"old{name.capitalize()}": f"{_UPDATED_ROOT} ? ({value}) : {{}}"
    for name, value in _amounts("oldObject.spec").items()
}
QUEUE_VARIABLES: Final[Mapping[str, str]] = {
    **_OWN,
    **_OLD,
    "annotations": f"{_DELETED} || !has(object.metadata.annotations) ? {{}} : object.metadata.annotations",
    "hierarchy": "'volcano.sh/hierarchy' in variables.annotations ? variables.annotations['volcano.sh/hierarchy'] : ''",
    "weights": (
        "'volcano.sh/hierarchy-weights' in variables.annotations ? "
        "variables.annotations['volcano.sh/hierarchy-weights'] : ''"
    ),
    "shares": "variables.hierarchy == '' && variables.weights == '' ? [] : variables.weights.split('/')",
}
_NUMBER: Final = r"^[+-]?([0-9]+\\.?[0-9]*|\\.[0-9]+)([eE][+-]?[0-9]{1,3})?$"
_WHOLE: Final = f"r in {listed(tuple(sorted(COUNTED)))} || {EXTENDED}"


def _every_amount(condition: str) -> str:
    return " && ".join(
        f"variables.{name}.all(r, {condition.format(amount=f'variables.{name}[r]')})"
        for name in ("capability", "deserved", "guarantee")
    )


def _same_amounts(new: str, old: str) -> str:
    """Whether two maps of quantities are equal."""
    same = f"{amount(f'{new}[r]')}.compareTo({amount(f'{old}[r]')}) == 0"
    return f"{new}.size() == {old}.size() && {new}.all(r, r in {old} && {same})"


QUEUE_RULES: Final = (
    Rule(
        f"{_DELETED} || !has(object.status) || !has(object.status.state) "
        "|| object.status.state in ['', 'Open', 'Closed']",
        "requestBody.status.state: queue state must be Open or Closed",
    ),
    Rule(
        _every_amount(f"!{amount('{amount}')}.isLessThan({NOTHING})"),
        "capability, deserved and guarantee must be greater than or equal to 0",
    ),
    Rule(
        _every_amount(f"!({_WHOLE}) || {has_whole_amount('{amount}')}"),
        "capability, deserved and guarantee of pods and extended resources must be an integer",
    ),
    Rule(
        "variables.deserved.all(r, !(r in variables.capability) || "
        f"!{amount('variables.deserved[r]')}.isGreaterThan({amount('variables.capability[r]')}))",
        "deserved must be <= capability",
    ),
    Rule(
        "variables.guarantee.all(r, !(r in variables.deserved) || "
        f"!{amount('variables.guarantee[r]')}.isGreaterThan({amount('variables.deserved[r]')}))",
        "deserved must be >= guarantee",
    ),
    Rule(
        "variables.guarantee.all(r, r in variables.deserved || !(r in variables.capability) || "
        f"!{amount('variables.guarantee[r]')}.isGreaterThan({amount('variables.capability[r]')}))",
        "guarantee must be <= capability",
    ),
    Rule(
        "variables.hierarchy.split('/').size() == variables.weights.split('/').size()",
        "volcano.sh/hierarchy must have the same length with volcano.sh/hierarchy-weights",
    ),
    Rule(
        f"variables.shares.all(w, w.matches('{_NUMBER}'))",
        "a weight in volcano.sh/hierarchy-weights is not a number",
    ),
    Rule(
        f"variables.shares.all(w, !w.matches('{_NUMBER}') || double(w) > 0.0)",
        "every weight in volcano.sh/hierarchy-weights must be larger than 0",
    ),
    Rule(
        f"{_DELETED} || !has(object.spec.parent) || object.spec.parent == 'root' "
        "|| object.spec.parent != object.metadata.name || (request.operation == 'UPDATE' "
        "&& has(oldObject.spec.parent) && oldObject.spec.parent == object.spec.parent)",
        "a queue cannot be the parent of itself",
    ),
    Rule(
        f"!({_UPDATED_ROOT}) || ("
        + " && ".join(
            _same_amounts(f"variables.{name}", f"variables.old{name.capitalize()}")
            for name in ("capability", "deserved", "guarantee")
        )
        + ")",
        "capability, deserved and guarantee of the root queue cannot be changed",
    ),
    Rule(
        f"!({_DELETED}) || !(oldObject.metadata.name in ['default', 'root'])",
        "`default` and `root` queue can not be deleted",
    ),
)

# -- Pod ----------------------------------------------------------------------------------------------------------
BUDGETS: Final = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
POD_CONDITION: Final = "has(object.spec.schedulerName) && object.spec.schedulerName == 'volcano'"
POD_VARIABLES: Final[Mapping[str, str]] = {
    "annotations": "has(object.metadata.annotations) ? object.metadata.annotations : {}",
    "budgets": f"{listed(BUDGETS)}.filter(k, k in variables.annotations)",
}
POD_RULES: Final = (
    Rule(
        "variables.budgets.all(k, variables.annotations[k].matches('^[+]?0*[1-9][0-9]*$') || "
        "variables.annotations[k].matches('^[+]?0*[1-9][0-9]?%$'))",
        "invalid value for volcano.sh/jdb-min-available or volcano.sh/jdb-max-unavailable: it must be a positive "
        "integer, or a valid percentage which between 1% ~ 99%",
    ),
    Rule("variables.budgets.size() <= 1", "not allow configure multiple annotations at same time"),
    estimate_annotation(),
)

# -- PodGroup -----------------------------------------------------------------------------------------------------
PODGROUP_RULES: Final = (
    Rule(
        "!has(object.spec.minTaskMember) || object.spec.minTaskMember.all(t, object.spec.minTaskMember[t] >= 0)",
        "spec.minTaskMember[*]: must be greater than or equal to 0",
    ),
    Rule(
        "!has(object.spec.minResources) || object.spec.minResources.all(r, "
        "quantity(string(object.spec.minResources[r])).compareTo(quantity('0')) >= 0)",
        "spec.minResources[*]: must be greater than or equal to 0",
    ),
    Rule(
        f"!has(object.spec.networkTopology) || {one_tier('object.spec.networkTopology')}",
        both_tiers("networkTopology"),
    ),
    Rule(
        "!has(object.spec.subGroupPolicy) || object.spec.subGroupPolicy.all(p, "
        f"!has(p.networkTopology) || {one_tier('p.networkTopology')})",
        both_tiers("the networkTopology of subGroupPolicy"),
    ),
    estimate_annotation(),
)

# -- HyperNode ----------------------------------------------------------------------------------------------------
HYPERNODE_VARIABLES: Final[Mapping[str, str]] = {
    "members": "has(object.spec.members) ? object.spec.members : []",
    "names": (
        "variables.members.filter(m, has(m.selector) && has(m.selector.exactMatch))"
        ".map(m, has(m.selector.exactMatch.name) ? m.selector.exactMatch.name : '')"
    ),
}
HYPERNODE_RULES: Final = (
    Rule("variables.members.size() > 0", "spec.members: member must have at least one member"),
    Rule(
        "variables.members.all(m, has(m.selector) && [has(m.selector.exactMatch), has(m.selector.regexMatch), "
        "has(m.selector.labelMatch)].filter(given, given).size() == 1)",
        "spec.members[*].selector: exactly one of exactMatch, regexMatch and labelMatch must be specified",
    ),
    Rule(
        f"variables.names.all(n, n != '' && n.size() <= 253 && n.matches('{SUBDOMAIN}'))",
        "spec.members[*].selector.exactMatch.name must be a non-empty qualified name",
    ),
    # A pattern that does not compile ends in an error: that refuses the object, and shows the expression with its end
    Rule(
        "variables.members.all(m, !has(m.selector) || !has(m.selector.regexMatch) || (m.selector.regexMatch.pattern "
        "!= '' && ''.matches(m.selector.regexMatch.pattern) in [true, false])) // member regexMatch pattern is invalid",
        "spec.members[*].selector.regexMatch.pattern: member regexMatch pattern is invalid",
    ),
)

# -- JobFlow ------------------------------------------------------------------------------------------------------
_TARGETS: Final = "(has(n.dependsOn) && has(n.dependsOn.targets) ? n.dependsOn.targets : [])"
_SAME_NAME: Final = "object.spec.flows.filter(g, g.name == f.name)"
JOBFLOW_VARIABLES: Final[Mapping[str, str]] = {
    # Of two of a name the later counts
    "flows": f"has(object.spec.flows) ? object.spec.flows.map(f, {_SAME_NAME}[{_SAME_NAME}.size() - 1]) : []",
    "names": "variables.flows.map(f, f.name)",
    **layers("variables.flows", _TARGETS),
}
JOBFLOW_RULES: Final = (
    Rule(
        f"variables.flows.all(n, {_TARGETS}.all(t, t in variables.names))",
        "jobflow Flow is not DAG: vertex is not defined",
    ),
    Rule(has_no_cycle("variables.flows"), "jobflow Flow is not DAG: it has a cycle"),
)

# -- CronJob ------------------------------------------------------------------------------------------------------
_DESCRIPTORS: Final = "yearly|annually|monthly|weekly|daily|midnight|hourly"
CRONJOB_VARIABLES: Final[Mapping[str, str]] = {
    "schedule": given("object.spec.schedule", "''"),
    "zone": given("object.spec.timeZone", "'UTC'"),
}
CRONJOB_RULES: Final = (
    Rule("variables.schedule != ''", "spec.schedule: Required value"),
    Rule(
        "!variables.schedule.contains('TZ')",
        "spec.schedule: Invalid value: cannot use TZ or CRON_TZ in schedule, use timeZone instead",
    ),
    Rule(
        "!variables.schedule.startsWith('@') "
        f"|| variables.schedule.matches('^@({_DESCRIPTORS}|every [+]?{DURATION})$')",
        "spec.schedule: Invalid value: unrecognized descriptor, or failed to parse duration",
    ),
    Rule(
        r"variables.schedule.startsWith('@') || variables.schedule.matches('^\\s*(\\S+\\s+){4}\\S+\\s*$')",
        "spec.schedule: Invalid value: expected exactly 5 fields",
    ),
    Rule(
        "variables.zone.split('/').all(p, p.matches('^[A-Za-z0-9._+][A-Za-z0-9._+-]{0,13}$') && !(p in ['.', '..'])) "
        "&& variables.zone.lowerAscii() != 'local'",
        "spec.timeZone: Invalid value: must be the name of a time zone",
    ),
    Rule(
        "!has(object.metadata.name) || object.metadata.name.size() <= 52",
        "metadata.name: Invalid value: must be no more than 52 characters",
    ),
)
