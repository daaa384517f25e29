"""Privilege escalation: a role or binding may grant no more than its author may do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from volcano.api.errors import Forbidden
from volcano.api.meta import JSON
from volcano.embedded.apiserver.access.authorization import (
    MASTERS,
    RBAC,
    AccessRequest,
    Authorizer,
    PolicyRule,
    RoleBasedAccess,
    rules_from,
)
from volcano.machinery.admission import Attributes

_ROLES = frozenset({"roles", "clusterroles"})
_BINDINGS = frozenset({"rolebindings", "clusterrolebindings"})
_PARTS = ("metadata", "rules", "aggregationRule")
_OF_DELETION = ("finalizers", "ownerReferences", "managedFields", "generation", "resourceVersion")
_EVERYTHING = (PolicyRule(("*",), ("*",), ("*",)), PolicyRule(("*",), non_resource_urls=("*",)))


def check_escalation(authorizer: Authorizer, attributes: Attributes) -> None:
    """Forbidden when a role grants, or a binding refers to, more than its author may do."""
    row, user = attributes.resource, attributes.user
    if row.group != RBAC or attributes.object is None or MASTERS in user.groups:
        return
    if row.plural in _ROLES:
        escalation = AccessRequest("escalate", RBAC, row.plural, "", attributes.namespace, attributes.name)
        if not authorizer.allows(user, escalation):
            _check_role(authorizer, attributes, attributes.object, attributes.old)
    elif row.plural in _BINDINGS and isinstance(authorizer, RoleBasedAccess):
        _check_binding(authorizer, attributes)


def _check_role(authorizer: Authorizer, attributes: Attributes, role: JSON, old: JSON | None) -> None:
    """Labels count too: roles that aggregate select by them. What gathers rules of others may gather any."""
    if old is not None and all(_without_deletion(role, part) == _without_deletion(old, part) for part in _PARTS):
        return
    wanted = rules_from(role)
    if role.get("aggregationRule") or (old or {}).get("aggregationRule"):
        wanted = (*wanted, *_EVERYTHING)
    _check_covered(authorizer, attributes, wanted)


def _without_deletion(role: JSON, part: str) -> object:
    """A part of a role, without what the collector of garbage changes."""
    value = role.get(part) or {}
    return {k: v for k, v in value.items() if k not in _OF_DELETION} if part == "metadata" else value


def _check_binding(authorizer: RoleBasedAccess, attributes: Attributes) -> None:
    reference: JSON = (attributes.object or {}).get("roleRef") or {}
    kind, name = str(reference.get("kind")), str(reference.get("name"))
    plural = "clusterroles" if kind == "ClusterRole" else "roles"
    if authorizer.allows(attributes.user, AccessRequest("bind", RBAC, plural, "", attributes.namespace, name)):
        return
    rules = authorizer.rules_of_role(kind, attributes.namespace, name)
    if rules is None:
        raise Forbidden(f'{plural}.{RBAC} "{name}" not found')
    _check_covered(authorizer, attributes, rules)


def _check_covered(authorizer: Authorizer, attributes: Attributes, wanted: Iterable[PolicyRule]) -> None:
    own = authorizer.rules_for(attributes.user, attributes.namespace)
    missing = [rule for rule in wanted if not all(_is_covered(part, own) for part in _parts(rule))]
    if missing:
        listed = "\n".join(_shown(rule) for rule in missing)
        raise Forbidden(
            f'{attributes.resource.qualified} "{attributes.name}" is forbidden: user "{attributes.user.name}" '
            f"(groups={list(attributes.user.groups)}) is attempting to grant RBAC permissions not currently "
            f"held:\n{listed}"
        )


def _parts(rule: PolicyRule) -> Iterator[PolicyRule]:
    """One verb, one group, one resource at a time, so that several own rules together can cover one."""
    for verb in rule.verbs:
        for url in rule.non_resource_urls:
            yield PolicyRule((verb,), non_resource_urls=(url,))
        for group in rule.api_groups:
            for resource in rule.resources:
                yield PolicyRule((verb,), (group,), (resource,), rule.resource_names)


def _is_covered(part: PolicyRule, own: Sequence[PolicyRule]) -> bool:
    return any(rule.covers(part) for rule in own)


def _shown(rule: PolicyRule) -> str:
    if rule.non_resource_urls:
        return f"{{NonResourceURLs:{list(rule.non_resource_urls)}, Verbs:{list(rule.verbs)}}}"
    return f"{{APIGroups:{list(rule.api_groups)}, ResourceVerbs:{list(rule.resources)}, Verbs:{list(rule.verbs)}}}"
