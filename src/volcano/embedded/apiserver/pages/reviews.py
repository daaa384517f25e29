"""The review kinds: a POST is answered with its status and never stored (whose token, who am I, may I, may they)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from volcano.api.errors import BadRequest, FieldError, Invalid, MethodNotAllowed, NotFound
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.access.authentication import Authenticator
from volcano.embedded.apiserver.access.authorization import AccessRequest, Authorizer
from volcano.embedded.apiserver.exchange import Exchange
from volcano.embedded.apiserver.wire.bodies import decode_request_kind
from volcano.embedded.apiserver.wire.representation import reply
from volcano.machinery.transport import Response, User

_AUTHN: Final = "authentication.k8s.io"
_AUTHZ: Final = "authorization.k8s.io"

REVIEWS: Final = (
    ResourceType(_AUTHN, "v1", "TokenReview", "tokenreviews", namespaced=False),
    ResourceType(_AUTHN, "v1", "SelfSubjectReview", "selfsubjectreviews", namespaced=False),
    ResourceType(_AUTHZ, "v1", "SubjectAccessReview", "subjectaccessreviews", namespaced=False),
    ResourceType(_AUTHZ, "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", namespaced=False),
    ResourceType(_AUTHZ, "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", namespaced=False),
    ResourceType(_AUTHZ, "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews"),
)
_BY_RESOURCE: Final = {(row.group, row.version, row.plural): row for row in REVIEWS}


class AccessReviews:
    """Answers reviews with the server's own authenticator and authorizer."""

    def __init__(self, authenticator: Authenticator, authorizer: Authorizer) -> None:
        self._authenticator = authenticator
        self._authorizer = authorizer
        self._answers: Mapping[str, Callable[[JSON, User, str], JSON]] = {
            "tokenreviews": self._token,
            "selfsubjectreviews": self._who_am_i,
            "subjectaccessreviews": self._may_they,
            "localsubjectaccessreviews": self._may_they,
            "selfsubjectaccessreviews": self._may_i,
            "selfsubjectrulesreviews": self._my_rules,
        }

    def answer(self, exchange: Exchange) -> Response | None:
        """The review with its status; None when the request is about another resource."""
        target, user = exchange.target, exchange.user
        assert target is not None and user is not None, "pages and authorization come first"
        row = _BY_RESOURCE.get((target.group, target.version, target.resource))
        if row is None:
            return None
        if not target.fits_scope(namespaced=row.namespaced):
            raise NotFound("the server could not find the requested resource")
        if target.verb != "create" or target.name:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        review = decode_request_kind(exchange.request, row.api_version, row.kind)
        if review["kind"] != row.kind:
            raise BadRequest(f"{review['kind']} cannot be handled as a {row.kind}")
        spec = review.get("spec") or {}
        if not isinstance(spec, dict):
            raise BadRequest(f"{row.kind}: spec must be an object")
        status = self._answers[row.plural](spec, user, target.namespace)
        return reply({**review, "status": status}, 201)

    def _token(self, spec: JSON, user: User, namespace: str) -> JSON:
        token, audiences = spec.get("token"), spec.get("audiences") or []
        if not isinstance(token, str) or not token:
            raise BadRequest("token is required for TokenReview in authentication")
        found = self._authenticator.user_of_token(token, [str(a) for a in audiences])
        if found is None:
            return {"authenticated": False, "user": {}, "error": "[invalid bearer token, token lookup failed]"}
        return {"authenticated": True, "user": _user(found), "audiences": audiences or None}

    def _who_am_i(self, spec: JSON, user: User, namespace: str) -> JSON:
        return {"userInfo": _user(user)}

    def _may_i(self, spec: JSON, user: User, namespace: str) -> JSON:
        return self._verdict(user, _ask(spec))

    def _may_they(self, spec: JSON, user: User, namespace: str) -> JSON:
        groups = spec.get("groups") or []
        if not spec.get("user") and not groups:
            raise BadRequest(
                "SubjectAccessReview: spec.user: Required value: at least one of user or group must be specified"
            )
        other = User(str(spec.get("user") or ""), tuple(map(str, groups)))
        ask = _ask(spec)
        if namespace and ask.namespace != namespace:
            raise BadRequest(f"spec.resourceAttributes.namespace must match metadata.namespace: {namespace}")
        return self._verdict(other, ask)

    def _verdict(self, user: User, ask: AccessRequest) -> JSON:
        allowed = self._authorizer.allows(user, ask)
        return {"allowed": allowed}

    def _my_rules(self, spec: JSON, user: User, namespace: str) -> JSON:
        asked = spec.get("namespace")
        if not isinstance(asked, str) or not asked:
            raise BadRequest("no namespace on request")
        rules = self._authorizer.rules_for(user, asked)
        resource = [
            {
                "verbs": list(rule.verbs),
                "apiGroups": list(rule.api_groups),
                "resources": list(rule.resources),
                **({"resourceNames": list(rule.resource_names)} if rule.resource_names else {}),
            }
            for rule in rules
            if rule.resources
        ]
        other = [
            {"verbs": list(rule.verbs), "nonResourceURLs": list(rule.non_resource_urls)}
            for rule in rules
            if rule.non_resource_urls
        ]
        return {"resourceRules": resource, "nonResourceRules": other, "incomplete": False}


def _ask(spec: JSON) -> AccessRequest:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if isinstance(resource, dict) == isinstance(path, dict):
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        error = FieldError("spec.resourceAttributes", f"Invalid value: null: {why}")
        raise Invalid.of("", "", [error], _AUTHZ)
    if isinstance(path, dict):
        return AccessRequest(_text(path, "verb"), path=_text(path, "path"))
    assert isinstance(resource, dict)
    return AccessRequest(
        _text(resource, "verb"),
        _text(resource, "group"),
        _text(resource, "resource"),
        _text(resource, "subresource"),
        _text(resource, "namespace"),
        _text(resource, "name"),
    )


def _text(values: JSON, field: str) -> str:
    value: Any = values.get(field)
    return value if isinstance(value, str) else ""


def _user(user: User) -> JSON:
    shown: JSON = {"username": user.name, "groups": list(user.groups)}
    if user.uid:
        shown["uid"] = user.uid
    if user.extra:
        shown["extra"] = {key: list(values) for key, values in user.extra.items()}
    return shown
