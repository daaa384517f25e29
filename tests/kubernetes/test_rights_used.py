"""No right of the chart is given for nothing: all of them were used by some test of this suite, by the one who has it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import needs
from volcano.install.installation import installation
from volcano.install.values import Values

HERE = Path(__file__)
ACCOUNTS = "system:serviceaccount:volcano-system:"


class Right(NamedTuple):
    account: str
    verb: str
    group: str
    resource: str


RARELY = {
    Right("volcano-scheduler", "patch", "", "events"): "an event that is said again more than ten seconds later",
    Right("volcano-controllers", "patch", "", "events"): "an event that is said again more than ten seconds later",
    Right("volcano-scheduler", "patch", "", "nodes"): (
        "the lock of a node that a device plugin needs, with deviceshare.NodeLockEnable; no device plugin runs here"
    ),
    Right("volcano-scheduler", "patch", "resource.k8s.io", "resourceclaims/binding"): (
        "asked for beside resourceclaims/status, in no request of its own"
    ),
    Right("volcano-controllers", "get", "batch.volcano.sh", "jobs"): "a flow looks for a job whose end nobody saw",
    Right("volcano-admission", "list", "", "nodes"): "a Reservation is written; no test here has the webhook check one",
    Right("volcano-admission", "list", "reservation.volcano.sh", "reservations"): "likewise",
    Right("volcano-admission-init", "patch", "", "secrets"): "the certificate is renewed some weeks before it ends",
}
"""What no test of a few minutes can provoke, and when it is used."""


def given() -> set[Right]:
    """All rights of an installation with everything switched on."""
    bodies = installation(Values({"controllers.sharding": True}))
    rules = {
        (body["kind"], body["metadata"]["name"]): body["rules"]
        for body in bodies
        if body["kind"] in ("Role", "ClusterRole")
    }
    found = set()
    for body in bodies:
        if body["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        (subject,) = body["subjects"]
        for rule in rules[body["roleRef"]["kind"], body["roleRef"]["name"]]:
            found |= {
                Right(subject["name"], verb, group, resource)
                for verb in rule["verbs"] for group in rule["apiGroups"] for resource in rule["resources"]
            }  # fmt: skip
    return found


def used(logs: list[Path]) -> set[Right]:
    """What components asked for and were granted; tests that borrow an account do not count."""
    found = set()
    for log in logs:
        for line in log.read_text().splitlines():
            entry = json.loads(line)
            user, where = entry["user"]["username"], entry.get("objectRef")
            if where is None or not user.startswith(ACCOUNTS) or not entry.get("userAgent", "").startswith("vc-"):
                continue
            if entry.get("annotations", {}).get("authorization.k8s.io/decision") == "allow":
                resource = "/".join(filter(None, (where["resource"], where.get("subresource"))))
                found.add(Right(user.removeprefix(ACCOUNTS), entry["verb"], where.get("apiGroup", ""), resource))
    return found


def is_of_owners(right: Right) -> bool:
    """Never asked for by itself: the server looks whether it is there when an object names its owner."""
    return right.resource.endswith("/finalizers") and right.verb == "update"


def test_every_right_is_used(request: pytest.FixtureRequest, audit_logs: list[Path]):
    ran = {item.path for item in request.session.items}
    suite = {path for folder in ("kubernetes", "stories") for path in HERE.parents[1].glob(f"{folder}/test_*.py")}
    left_out = suite - ran
    if left_out or request.session.testsfailed:
        pytest.skip(
            needs.reason(
                "only the whole suite, if all of it passes, shows which rights are used", "make test-kubernetes"
            )
        )
    if not audit_logs:
        pytest.skip(needs.CONTROL_PLANE)

    asked = used(audit_logs)

    unused = {right for right in given() - asked if not is_of_owners(right)}
    assert sorted(unused - set(RARELY)) == []


def test_what_is_used_rarely_is_given_at_all():
    assert set(RARELY) <= given()
