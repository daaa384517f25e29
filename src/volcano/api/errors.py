"""API errors: one exception family that maps to and from Kubernetes Status objects.

ApiError
├── BadRequest            400 BadRequest        the request cannot be understood
├── Unauthorized          401 Unauthorized      unknown credentials
├── Forbidden             403 Forbidden         known, but not allowed (also admission refusals)
├── NotFound              404 NotFound
├── MethodNotAllowed      405 MethodNotAllowed
├── NotAcceptable         406 NotAcceptable
├── AlreadyExists         409 AlreadyExists     create of a name that is taken
├── Conflict              409 Conflict          a stale resourceVersion, a precondition, an apply conflict
├── Gone                  410 Expired / Gone    a revision that was compacted
├── TooLarge              413 RequestEntityTooLarge
├── UnsupportedMediaType  415 UnsupportedMediaType
├── Invalid               422 Invalid           field errors, each with its path
├── TooManyRequests       429 TooManyRequests   (an eviction that a budget refuses, or overload)
├── InternalError         500 InternalError
├── ServiceUnavailable    503 ServiceUnavailable
└── Timeout               504 Timeout
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from volcano.api.meta import JSON


class FieldError(msgspec.Struct, frozen=True):
    """One reason why a value was refused: `spec.tasks[0].replicas: Invalid value: -1: must be …`."""

    path: str
    message: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


class ApiError(Exception):
    """What the API server answers instead of an object."""

    code: ClassVar[int] = 500
    reason: ClassVar[str] = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        reason: str | None = None,
        details: Mapping[str, Any] | None = None,
        code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status_code = code if code is not None else type(self).code
        self.status_reason = reason if reason is not None else type(self).reason
        self.details: JSON = dict(details or {})
        self.is_status = True
        """False where the answer was none of an API server: it had no Status object."""

    def status(self) -> JSON:
        """This error as the Status object sent on the wire."""
        status: JSON = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.status_reason,
            "code": self.status_code,
        }
        if self.details:
            status["details"] = self.details
        return status

    @property
    def retry_after(self) -> int | None:
        seconds = self.details.get("retryAfterSeconds")
        return int(seconds) if seconds is not None else None


class BadRequest(ApiError):
    code, reason = 400, "BadRequest"


class Unauthorized(ApiError):
    code, reason = 401, "Unauthorized"


class Forbidden(ApiError):
    code, reason = 403, "Forbidden"


class NotFound(ApiError):
    code, reason = 404, "NotFound"

    @classmethod
    def of(cls, plural: str, name: str, group: str = "") -> NotFound:
        qualified = f"{plural}.{group}" if group else plural
        return cls(f'{qualified} "{name}" not found', details=_details(name, group, plural))


class MethodNotAllowed(ApiError):
    code, reason = 405, "MethodNotAllowed"


class NotAcceptable(ApiError):
    code, reason = 406, "NotAcceptable"


class AlreadyExists(ApiError):
    code, reason = 409, "AlreadyExists"

    @classmethod
    def of(cls, plural: str, name: str, group: str = "") -> AlreadyExists:
        qualified = f"{plural}.{group}" if group else plural
        return cls(f'{qualified} "{name}" already exists', details=_details(name, group, plural))


class Conflict(ApiError):
    code, reason = 409, "Conflict"

    @classmethod
    def of(cls, plural: str, name: str, why: str, group: str = "") -> Conflict:
        qualified = f"{plural}.{group}" if group else plural
        return cls(
            f'Operation cannot be fulfilled on {qualified} "{name}": {why}',
            details=_details(name, group, plural),
        )


class Gone(ApiError):
    code, reason = 410, "Expired"


class TooLarge(ApiError):
    code, reason = 413, "RequestEntityTooLarge"


class UnsupportedMediaType(ApiError):
    code, reason = 415, "UnsupportedMediaType"


class Invalid(ApiError):
    code, reason = 422, "Invalid"

    @classmethod
    def of(cls, kind: str, name: str, errors: Iterable[FieldError], group: str = "") -> Invalid:
        errors = list(errors)
        listed = ", ".join(map(str, errors))
        text = f"[{listed}]" if len(errors) > 1 else listed
        qualified = f"{kind}.{group}" if group else kind
        causes = [{"reason": e.reason, "message": e.message, "field": e.path} for e in errors]
        return cls(
            f'{qualified} "{name}" is invalid: {text}',
            details={**_details(name, group, kind), "causes": causes},
        )


class TooManyRequests(ApiError):
    code, reason = 429, "TooManyRequests"


class InternalError(ApiError):
    code, reason = 500, "InternalError"


class ServiceUnavailable(ApiError):
    code, reason = 503, "ServiceUnavailable"


class Timeout(ApiError):
    code, reason = 504, "Timeout"


FAMILY: tuple[type[ApiError], ...] = (
    BadRequest, Unauthorized, Forbidden, NotFound, MethodNotAllowed, NotAcceptable, AlreadyExists, Conflict,
    Gone, TooLarge, UnsupportedMediaType, Invalid, TooManyRequests, InternalError, ServiceUnavailable, Timeout,
)  # fmt: skip
BY_REASON = {error.reason: error for error in FAMILY} | {"Gone": Gone}
BY_CODE = {error.code: error for error in reversed(FAMILY)} | {409: Conflict}


def error_from(code: int, body: Mapping[str, Any] | None, text: str = "") -> ApiError:
    """The exception for an HTTP answer: from its Status object, or from code and text alone."""
    status = body if body and body.get("kind") == "Status" else {}
    reason = str(status.get("reason", ""))
    family = BY_REASON.get(reason) or BY_CODE.get(code) or (BadRequest if 400 <= code < 500 else InternalError)
    message = str(status.get("message") or text or f"the server answered {code}")
    error = family(message, reason=reason or None, details=status.get("details") or {}, code=code)
    error.is_status = bool(status)
    return error


def _details(name: str, group: str, kind: str) -> JSON:
    details: JSON = {"name": name, "kind": kind}
    if group:
        details["group"] = group
    return details
