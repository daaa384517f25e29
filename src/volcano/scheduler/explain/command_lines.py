"""A change as a command line: kubectl or vcctl, ready to be pasted."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from volcano.api.why.answers import REPLACE, ChangedObject

SHORT_KINDS = {"PodGroup": "podgroup", "ResourceQuota": "quota", "PersistentVolumeClaim": "pvc"}


def patch_command(
    target: ChangedObject, resource: str, operations: Sequence[dict[str, Any]], action: str, names: Sequence[str] = ()
) -> str:
    """For fields that may not be changed, the object is replaced: deleted and created again with the patch."""
    text = shlex.quote(json.dumps(list(operations), separators=(",", ":")))
    where = f" -n {target.namespace}" if target.namespace else ""
    if action == REPLACE:
        return (
            f"kubectl get {resource} {target.name}{where} -o json | kubectl patch --local -f - --type=json -p {text} "
            "-o json | kubectl replace --force -f -"
        )
    listed = " ".join([target.name, *names])
    if names:
        return f"for name in {listed}; do kubectl patch {resource} $name{where} --type=json -p {text}; done"
    return f"kubectl patch {resource} {listed}{where} --type=json -p {text}"


def create_command(body: dict[str, Any]) -> str:
    text = shlex.quote(json.dumps(body, separators=(",", ":")))
    return f"echo {text} | kubectl create -f -"
