"""Nodes: a kubelet registers its node together with its status."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from volcano.api import field_errors as says
from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.names import qualified_name_problems
from volcano.embedded.apiserver.kinds.field_checks import quantity_map_errors
from volcano.embedded.apiserver.kinds.kubelets import kubelet_address
from volcano.embedded.apiserver.kinds.strategy import ProxyAddress, Strategy
from volcano.embedded.apiserver.store.contract import Store

_AMOUNTS: Final = (("status", "capacity"), ("status", "allocatable"))
_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Nodes(Strategy):
    has_generation = False
    keeps_given_status = True
    selectable_fields: Mapping[str, str] = {"spec.unschedulable": "false"}

    def validate(self, obj: JSON) -> list[FieldError]:
        return [*quantity_map_errors(obj, *_AMOUNTS), *_taint_errors((obj.get("spec") or {}).get("taints") or [])]

    def validate_update(self, obj: JSON, old: JSON) -> list[FieldError]:
        errors = self.validate(obj)
        before = (old.get("spec") or {}).get("providerID")
        if before and (obj.get("spec") or {}).get("providerID") != before:
            why = 'node updates may not change providerID except from "" to valid'
            errors.append(says.forbidden("spec.providerID", why))
        return errors

    def validate_status(self, obj: JSON, old: JSON) -> list[FieldError]:
        return quantity_map_errors(obj, *_AMOUNTS)

    def proxy_address(self, store: Store, namespace: str, name: str, port: str) -> ProxyAddress:
        """The node's kubelet, at its own port unless another is named."""
        host, kubelet_port, scheme = kubelet_address(store, name)
        return ProxyAddress(host, int(port) if port.isdigit() else kubelet_port, scheme, is_kubelet=True)


def _taint_errors(taints: list[Any]) -> list[FieldError]:
    errors: list[FieldError] = []
    for number, taint in enumerate(taints):
        path = f"metadata.taints[{number}]"  # Kubernetes reports them there, though they are in spec
        if not isinstance(taint, dict):
            errors.append(says.type_invalid(path, taint, "must be an object"))
            continue
        key, effect = taint.get("key") or "", taint.get("effect") or ""
        errors += [says.invalid(f"{path}.key", key, problem) for problem in qualified_name_problems(str(key))]
        if not effect:
            errors.append(says.required(f"{path}.effect"))
        elif effect not in _EFFECTS:
            errors.append(says.not_supported(f"{path}.effect", effect, _EFFECTS))
    return errors
