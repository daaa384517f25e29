"""Roles and their bindings. What they grant is evaluated by access.authorization."""

from __future__ import annotations

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.names import path_segment_problems
from volcano.embedded.apiserver.kinds.strategy import Strategy


class Roles(Strategy):
    """Roles and ClusterRoles."""

    has_generation = False

    def name_problems(self, name: str) -> list[str]:
        return path_segment_problems(name)

    def validate(self, obj: JSON) -> list[FieldError]:
        errors: list[FieldError] = []
        rules = obj.get("rules") or []
        if isinstance(obj.get("aggregationRule"), dict) and not obj["aggregationRule"].get("clusterRoleSelectors"):
            why = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(says.required("aggregationRule.clusterRoleSelectors", why))
        if not isinstance(rules, list):
            return [says.type_invalid("rules", rules, "must be a list")]
        for number, rule in enumerate(rules):
            path = f"rules[{number}]"
            if not isinstance(rule, dict):
                errors.append(says.type_invalid(path, rule, "must be an object"))
                continue
            if not rule.get("verbs"):
                errors.append(says.required(f"{path}.verbs", "verbs must contain at least one value"))
            if rule.get("nonResourceURLs"):
                if obj["kind"] == "Role":
                    errors.append(
                        says.invalid(
                            f"{path}.nonResourceURLs",
                            rule["nonResourceURLs"],
                            "namespaced rules cannot apply to non-resource URLs",
                        )
                    )
                continue
            if not rule.get("apiGroups"):
                errors.append(says.required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
            if not rule.get("resources"):
                errors.append(says.required(f"{path}.resources", "resource rules must supply at least one resource"))
        return errors


class RoleBindings(Strategy):
    """RoleBindings and ClusterRoleBindings."""

    has_generation = False

    def name_problems(self, name: str) -> list[str]:
        return path_segment_problems(name)

    def validate(self, obj: JSON) -> list[FieldError]:
        errors: list[FieldError] = []
        reference = obj.get("roleRef")
        if not isinstance(reference, dict):
            return [says.required("roleRef")]
        if reference.get("apiGroup") not in ("rbac.authorization.k8s.io", None, ""):
            errors.append(says.not_supported("roleRef.apiGroup", reference["apiGroup"], ("rbac.authorization.k8s.io",)))
        if reference.get("kind") not in ("Role", "ClusterRole"):
            errors.append(says.not_supported("roleRef.kind", reference.get("kind") or "", ("Role", "ClusterRole")))
        if not reference.get("name"):
            errors.append(says.required("roleRef.name"))
        for number, subject in enumerate(obj.get("subjects") or []):
            path = f"subjects[{number}]"
            if not isinstance(subject, dict) or not subject.get("name"):
                errors.append(says.required(f"{path}.name"))
            elif subject.get("kind") not in ("User", "Group", "ServiceAccount"):
                kinds = ("ServiceAccount", "User", "Group")
                errors.append(says.not_supported(f"{path}.kind", subject.get("kind"), kinds))
        return errors

    def validate_update(self, obj: JSON, old: JSON) -> list[FieldError]:
        errors, reference = self.validate(obj), obj.get("roleRef")
        if isinstance(reference, dict) and old.get("roleRef") != reference:
            errors.append(says.invalid("roleRef", reference, "cannot change roleRef"))
        return errors
