"""What the API server's refusal of a pod means: a quota, a limit, or an object that does not exist."""

from __future__ import annotations

import re
from typing import Final

from volcano.api.why.reasons import Finding, finding

MAX_MESSAGE_CHARACTERS: Final = 4096
"""Users can write conditions of any length, and patterns are searched from each of their characters."""
QUOTA: Final = re.compile(
    r"exceeded quota: (?P<quota>[^,\s]+), requested: (?P<requested>[^ ]+), used: (?P<used>[^ ]+), "
    r"limited: (?P<hard>[^ ]+)"
)
SERVICE_ACCOUNT: Final = re.compile(
    r'service ?account "?(?:[\w.-]+/)?(?P<name>[\w.-]+)"?(?: was)? not found', re.IGNORECASE
)
PRIORITY_CLASS: Final = re.compile(r"no PriorityClass with name (?P<name>\S+) was found")
LIMIT_RANGE: Final = re.compile(
    r"(?P<text>(?:maximum|minimum) \S+ usage per \w+ is [^,]+, but [^\[\],]+|"
    r"\S+ max limit to request ratio per \w+ is [^,]+, but [^\[\],]+)"
)
ENDING_NAMESPACE: Final = re.compile(r"because it is being terminated")
PREFIX: Final = re.compile(r"^.*?(?:is forbidden: |denied the request: |is invalid: )")


def refusal_cause(message: str, namespace: str, *, needed: int = 0) -> Finding:
    """`needed`: pods of the job in all, which a quota on pods is compared with."""
    message = message[:MAX_MESSAGE_CHARACTERS]
    found = QUOTA.search(message)
    if found is not None:
        return _quota(found, needed)
    found = PRIORITY_CLASS.search(message)
    if found is not None:
        return finding("PriorityClassNotFound", name=found["name"])
    found = SERVICE_ACCOUNT.search(message)
    if found is not None:
        return finding("ServiceAccountNotFound", name=found["name"], namespace=namespace)
    found = LIMIT_RANGE.search(message)
    if found is not None:
        return finding("OutsideLimitRange", namespace=namespace, message=found["text"].strip())
    if ENDING_NAMESPACE.search(message):
        return finding("NamespaceEnding", namespace=namespace)
    return finding("PodsRefused", message=PREFIX.sub("", message, count=1).strip() or message)


def _quota(found: re.Match[str], needed: int) -> Finding:
    requested, used, hard = (_amounts(found[part]) for part in ("requested", "used", "hard"))
    resource = next(iter(requested), "")
    wanted = str(needed) if resource in ("pods", "count/pods") and needed else requested.get(resource, "")
    return finding(
        "QuotaUsed",
        quota=found["quota"],
        used=used.get(resource, ""),
        hard=hard.get(resource, ""),
        resource=resource,
        needed=wanted,
    )


def _amounts(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.rstrip(".").split(","))
    return {name: amount for name, _, amount in pairs if name}
