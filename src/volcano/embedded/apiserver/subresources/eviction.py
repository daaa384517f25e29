"""eviction: delete a pod if its disruption budget allows it, and count the disruption in the budget's status."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.core import FINISHED_POD_PHASES
from volcano.api.errors import BadRequest, InternalError, MethodNotAllowed, TooManyRequests
from volcano.api.meta import JSON
from volcano.api.selectors import selector_from
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.store.contract import Stored
from volcano.embedded.apiserver.verbs.delete import delete_object, delete_options_from
from volcano.embedded.apiserver.verbs.writing import update_object
from volcano.embedded.apiserver.wire.bodies import decode_request_kind
from volcano.embedded.apiserver.wire.representation import reply, success
from volcano.embedded.apiserver.wire.requests import RequestTarget, dry_run
from volcano.machinery.transport import Response

BUDGETS: Final = "poddisruptionbudgets"
MAX_DISRUPTED_PODS: Final = 2000


async def evict(call: Call) -> Response:
    if call.target.verb != "create":
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    body = decode_request_kind(call.request, "policy/v1", "Eviction")
    named = (body.get("metadata") or {}).get("name")
    if named and named != call.target.name:
        raise BadRequest("name in URL does not match name in Eviction object")
    asked = body.get("deleteOptions") or {}
    if not isinstance(asked, dict):
        raise BadRequest("Eviction: deleteOptions must be an object")
    options = delete_options_from(asked, call.request)
    if dry_run(call.request.params("dryRun")):
        options = msgspec.structs.replace(options, dry_run=True)
    pod: JSON = msgspec.json.decode(call.found().raw)
    if not _is_free(pod):
        await _claim_disruption(call, pod, is_dry=options.dry_run)
    await delete_object(call, options)
    return reply(success(), 201, call.warnings)


def _is_free(pod: JSON) -> bool:
    """Budgets do not protect pods that have ended, have not started, or are being deleted."""
    phase = (pod.get("status") or {}).get("phase")
    return phase in (*FINISHED_POD_PHASES, "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


async def _claim_disruption(call: Call, pod: JSON, *, is_dry: bool) -> None:
    budgets = _budgets_of(call, pod)
    if len(budgets) > 1:
        raise InternalError(
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
    if not budgets:
        return
    budget = budgets[0]
    served = call.backend.registry.find("policy", "v1", BUDGETS)
    assert served is not None
    target = RequestTarget("update", "policy", "v1", BUDGETS, budget.key.namespace, budget.key.name, "status")
    one = Call(call.backend, call.request, target, served, call.user)
    name = pod["metadata"]["name"]

    def claim(found: JSON) -> JSON:
        if not _may_go_unready(found, pod):
            _check_allowed(found)
            status = found["status"]
            status["disruptionsAllowed"] -= 1
            status["disruptedPods"] = {**(status.get("disruptedPods") or {}), name: call.backend.timestamp()}
        return found

    from volcano.embedded.apiserver.wire.requests import WriteOptions

    await update_object(one, claim, WriteOptions(dry_run=is_dry), subresource="status")


def _budgets_of(call: Call, pod: JSON) -> list[Stored]:
    labels = pod["metadata"].get("labels") or {}
    found = []
    for stored in call.backend.store.scan(f"{BUDGETS}.policy", pod["metadata"]["namespace"]):
        selector = (msgspec.json.decode(stored.raw).get("spec") or {}).get("selector")
        if selector is not None and selector_from(selector).matches(labels):
            found.append(stored)
    return found


def _may_go_unready(budget: JSON, pod: JSON) -> bool:
    """An unready pod is not counted as healthy: it may be evicted if the policy is AlwaysAllow or the budget is met."""
    conditions = (pod.get("status") or {}).get("conditions") or []
    if any(c.get("type") == "Ready" and c.get("status") == "True" for c in conditions):
        return False
    spec, status = budget.get("spec") or {}, budget.get("status") or {}
    if spec.get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
    return bool(healthy >= desired > 0)


def _check_allowed(budget: JSON) -> None:
    status = budget.get("status") or {}
    name = budget["metadata"]["name"]
    if (status.get("observedGeneration") or 0) < (budget["metadata"].get("generation") or 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", retry=10)
    if len(status.get("disruptedPods") or {}) > MAX_DISRUPTED_PODS:
        raise _refused("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
    if (status.get("disruptionsAllowed") or 0) <= 0:
        healthy, desired = status.get("currentHealthy") or 0, status.get("desiredHealthy") or 0
        raise _refused(f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")


def _refused(message: str, retry: int = 0) -> TooManyRequests:
    details: JSON = {"causes": [{"reason": "DisruptionBudget", "message": message}]}
    if retry:
        details["retryAfterSeconds"] = retry
    return TooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", details=details)
