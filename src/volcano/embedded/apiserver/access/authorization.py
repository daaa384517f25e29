"""Role-based access control, evaluated on the stored roles and bindings.

system:masters may do everything. Aggregated cluster roles are evaluated here, so no controller has to fill them in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

import msgspec

from volcano.api.meta import JSON
from volcano.api.selectors import selector_from
from volcano.embedded.apiserver.store.contract import LoggedChange, ObjectKey, Store
from volcano.machinery.transport import User

RBAC: Final = "rbac.authorization.k8s.io"
ROLES: Final = f"roles.{RBAC}"
CLUSTER_ROLES: Final = f"clusterroles.{RBAC}"
ROLE_BINDINGS: Final = f"rolebindings.{RBAC}"
CLUSTER_ROLE_BINDINGS: Final = f"clusterrolebindings.{RBAC}"
_OURS: Final = frozenset((ROLES, CLUSTER_ROLES, ROLE_BINDINGS, CLUSTER_ROLE_BINDINGS))
MASTERS: Final = "system:masters"
MAX_CACHED_USERS: Final = 4096
"""Pairs of user and namespace."""


class AccessRequest(msgspec.Struct, frozen=True):
    """What a user asks to do: with a resource, or with a path that names none."""

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def with_subresource(self) -> str:
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class PolicyRule(msgspec.Struct, frozen=True, rename="camel"):
    """One rule of a role."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = msgspec.field(default=(), name="nonResourceURLs")

    def allows(self, ask: AccessRequest) -> bool:
        if "*" not in self.verbs and ask.verb not in self.verbs:
            return False
        if ask.path:
            return any(_path_matches(pattern, ask.path) for pattern in self.non_resource_urls)
        if "*" not in self.api_groups and ask.group not in self.api_groups:
            return False
        if not self._names_resource(ask):
            return False
        return not self.resource_names or (bool(ask.name) and ask.name in self.resource_names)

    def _names_resource(self, ask: AccessRequest) -> bool:
        wanted = ask.with_subresource
        for resource in self.resources:
            if resource in ("*", wanted):
                return True
            if ask.subresource and resource == f"*/{ask.subresource}":
                return True
        return False

    def covers(self, other: PolicyRule) -> bool:
        """Whether everything the other rule allows is allowed by this one."""
        if "*" not in self.verbs and not set(other.verbs) <= set(self.verbs):
            return False
        if other.non_resource_urls:
            return all(
                any(_path_matches(mine, path) for mine in self.non_resource_urls) for path in other.non_resource_urls
            )
        if "*" not in self.api_groups and not set(other.api_groups) <= set(self.api_groups):
            return False
        if "*" not in self.resources and not set(other.resources) <= set(self.resources):
            return False
        return not self.resource_names or (
            bool(other.resource_names) and set(other.resource_names) <= set(self.resource_names)
        )


def _path_matches(pattern: str, path: str) -> bool:
    if pattern.endswith("*"):
        return path.startswith(pattern[:-1])
    return pattern == path


class Authorizer(Protocol):
    def allows(self, user: User, ask: AccessRequest) -> bool: ...

    def rules_for(self, user: User, namespace: str) -> Sequence[PolicyRule]: ...


class AllowEverything:
    """No authorization: for servers that only this process can reach."""

    def allows(self, user: User, ask: AccessRequest) -> bool:
        return True

    def rules_for(self, user: User, namespace: str) -> Sequence[PolicyRule]:
        return (PolicyRule(("*",), ("*",), ("*",)), PolicyRule(("*",), non_resource_urls=("*",)))


class RoleBasedAccess:
    """RBAC over the store. The rules of a user are cached until a role or binding changes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[tuple[str, tuple[str, ...], str], tuple[PolicyRule, ...]] = {}
        store.subscribe(self._follow)

    def allows(self, user: User, ask: AccessRequest) -> bool:
        if MASTERS in user.groups:
            return True
        return any(rule.allows(ask) for rule in self.rules_for(user, ask.namespace))

    def rules_for(self, user: User, namespace: str) -> Sequence[PolicyRule]:
        if MASTERS in user.groups:
            return AllowEverything().rules_for(user, namespace)
        key = (user.name, user.groups, namespace)
        found = self._known.get(key)
        if found is None:
            if len(self._known) > MAX_CACHED_USERS:
                self._known.clear()
            found = self._known[key] = tuple(self._rules(user, namespace))
        return found

    def rules_of_role(self, kind: str, namespace: str, name: str) -> tuple[PolicyRule, ...] | None:
        """The rules of a role that a binding refers to; None when there is no such role."""
        resource = CLUSTER_ROLES if kind == "ClusterRole" else ROLES
        stored = self._store.find(ObjectKey(resource, "" if kind == "ClusterRole" else namespace, name))
        if stored is None:
            return None
        role = msgspec.json.decode(stored.raw)
        return tuple(self._with_aggregated(role))

    def _follow(self, changes: Sequence[LoggedChange]) -> None:
        if any(change.stored.key.resource in _OURS for change in changes):
            self._known.clear()

    def _rules(self, user: User, namespace: str) -> Iterator[PolicyRule]:
        for binding in self._bindings(CLUSTER_ROLE_BINDINGS, ""):
            if _binds(binding, user, ""):
                yield from self._of_reference(binding, "")
        if namespace:
            for binding in self._bindings(ROLE_BINDINGS, namespace):
                if _binds(binding, user, namespace):
                    yield from self._of_reference(binding, namespace)

    def _bindings(self, resource: str, namespace: str) -> Iterator[JSON]:
        for stored in self._store.scan(resource, namespace):
            yield msgspec.json.decode(stored.raw)

    def _of_reference(self, binding: JSON, namespace: str) -> Iterable[PolicyRule]:
        reference = binding.get("roleRef") or {}
        return self.rules_of_role(str(reference.get("kind")), namespace, str(reference.get("name"))) or ()

    def _with_aggregated(self, role: JSON) -> Iterator[PolicyRule]:
        """Its rules and those of the roles that it selects; each role once, however they select each other."""
        waiting, seen = [role], {role["metadata"]["name"]}
        while waiting:
            one = waiting.pop()
            yield from rules_from(one)
            selectors = (one.get("aggregationRule") or {}).get("clusterRoleSelectors") or []
            wanted = [selector_from(selector) for selector in selectors]
            if not wanted:
                continue
            for other in self._bindings(CLUSTER_ROLES, ""):
                name, labels = other["metadata"]["name"], other["metadata"].get("labels") or {}
                if name not in seen and any(selector.matches(labels) for selector in wanted):
                    seen.add(name)
                    waiting.append(other)


def rules_from(role: JSON) -> tuple[PolicyRule, ...]:
    found = []
    for rule in role.get("rules") or []:
        try:
            found.append(msgspec.convert({k: v for k, v in rule.items() if v is not None}, PolicyRule))
        except (msgspec.ValidationError, AttributeError):
            continue  # a rule that cannot be read allows nothing
    return tuple(found)


def _binds(binding: JSON, user: User, namespace: str) -> bool:
    return any(_is_subject(subject, user, namespace) for subject in binding.get("subjects") or [])


def _is_subject(subject: Any, user: User, namespace: str) -> bool:
    if not isinstance(subject, dict):
        return False
    kind, name = subject.get("kind"), subject.get("name")
    if kind == "User":
        return bool(name == user.name)
    if kind == "Group":
        return name in user.groups
    if kind == "ServiceAccount":
        return f"system:serviceaccount:{subject.get('namespace') or namespace}:{name}" == user.name
    return False


def denial(user: User, ask: AccessRequest) -> str:
    """The reason of a refusal, in Kubernetes' words."""
    if ask.path:
        return f'User "{user.name}" cannot {ask.verb} path "{ask.path}"'
    where = f'in the namespace "{ask.namespace}"' if ask.namespace else "at the cluster scope"
    return f'User "{user.name}" cannot {ask.verb} resource "{ask.with_subresource}" in API group "{ask.group}" {where}'
