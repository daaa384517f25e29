"""A cluster whose pods ask for GPUs by ResourceClaims: 8 devices per node in one slice, claims of many kinds."""

from __future__ import annotations

from typing import Any

DRIVER = "gpu.example.com"
CLASS = "gpu"
GPUS = 8
GANG = 10
MODELS = ("a100", "h100", "l4")
A100 = 'device.attributes["gpu.example.com"].model == "a100"'
LARGE = 'device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) >= 0'
NUMA = "gpu.example.com/numa"

Request = dict[str, Any]


def exactly(count: int = 1, *expressions: str) -> Request:
    ask: Request = {"deviceClassName": CLASS, "allocationMode": "ExactCount", "count": count}
    if expressions:
        ask["selectors"] = [{"cel": {"expression": text}} for text in expressions]
    return ask


def asking(exact: Request, **more: Any) -> dict[str, Any]:
    return {"devices": {"requests": [{"name": "gpu", "exactly": exact}], **more}}


EITHER = {
    "devices": {
        "requests": [
            {
                "name": "gpu",
                "firstAvailable": [{"name": "large", **exactly(1, LARGE)}, {"name": "two", **exactly(2, A100)}],
            }
        ]
    }
}
KINDS: tuple[tuple[str, dict[str, Any], bool], ...] = (  # cpu, spec of the claim, whether the gang shares one
    ("2", asking(exactly()), False),
    ("4", asking(exactly(1, A100)), False),
    ("8", asking(exactly()), False),
    ("8", asking(exactly(1, LARGE)), False),
    ("8", asking(exactly(2)), False),
    ("11", asking(exactly(2), constraints=[{"matchAttribute": NUMA}]), False),
    ("20", asking(exactly(4)), False),
    ("20", asking(exactly(4), constraints=[{"matchAttribute": NUMA}]), False),
    ("40", asking(exactly(8)), False),
    ("3", EITHER, False),
    ("2", asking(exactly()), True),
)
WEIGHTS = (8, 4, 8, 2, 4, 2, 1, 1, 1, 2, 1)


def a_slice(number: int, node: str) -> dict[str, Any]:
    """Nodes differ by model; within a node, devices differ by index and NUMA node."""
    model = MODELS[number % len(MODELS)]
    memory = {"value": "24Gi" if model == "l4" else "80Gi"}
    devices = [
        {
            "name": f"gpu-{card}",
            "attributes": {
                "model": {"string": model},
                "index": {"int": card},
                "numa": {"int": card * 2 // GPUS},
                "uuid": {"string": f"{node}-{card}"},
            },
            "capacity": {"memory": memory},
        }
        for card in range(GPUS)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": f"slice-{node}", "uid": f"slice-{node}"},
        "spec": {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": devices},
    }


def a_class() -> dict[str, Any]:
    return {
        "metadata": {"name": CLASS, "uid": CLASS},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]},
    }


def a_claim(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"claim-{name}"}, "spec": spec}


def a_pod(name: str, group: str, cpu: str, claim: str, template: str) -> dict[str, Any]:
    """`template`: what the claim was made from, if it was."""
    container = {
        "resources": {"requests": {"cpu": cpu, "memory": "8Gi"}, "claims": [{"name": "gpu"}]},
    }
    meta = {"name": name, "namespace": "ns", "uid": name, "annotations": {"scheduling.k8s.io/group-name": group}}
    source = {"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim}
    spec = {"containers": [container], "resourceClaims": [{"name": "gpu", **source}]}
    statuses = [{"name": "gpu", "resourceClaimName": claim}] if template else []
    return {"metadata": meta, "spec": spec, "status": {"phase": "Pending", "resourceClaimStatuses": statuses}}


def gang(group: str, kind: tuple[str, dict[str, Any], bool], size: int) -> dict[str, list[dict[str, Any]]]:
    """The objects of one gang."""
    cpu, spec, is_shared = kind
    template = "" if is_shared else f"template-{KINDS.index(kind)}"
    names = [f"{group}-{index}" for index in range(size)]
    claims = [f"{group}-shared"] * size if is_shared else names
    return {
        "podGroups": [
            {
                "metadata": {"name": group, "namespace": "ns"},
                "spec": {"queue": "q", "minMember": size},
                "status": {"phase": "Inqueue"},
            }
        ],
        "pods": [a_pod(name, group, cpu, claim, template) for name, claim in zip(names, claims, strict=True)],
        "resourceClaims": [a_claim(claim, spec) for claim in dict.fromkeys(claims)],
    }


def cluster(nodes: int, pods: int) -> dict[str, list[dict[str, Any]]]:
    names = [f"node-{number:05d}" for number in range(nodes)]
    has = {"cpu": "96", "memory": "384Gi", "pods": "110"}
    kinds = [kind for kind, weight in zip(KINDS, WEIGHTS, strict=True) for _ in range(weight)]
    lists: dict[str, list[dict[str, Any]]] = {
        "queues": [{"metadata": {"name": "q"}, "spec": {"weight": 1}, "status": {"state": "Open"}}],
        "nodes": [{"metadata": {"name": name}, "status": {"allocatable": has, "capacity": has}} for name in names],
        "resourceSlices": [a_slice(number, name) for number, name in enumerate(names)],
        "deviceClasses": [a_class()],
        "podGroups": [],
        "pods": [],
        "resourceClaims": [],
    }
    for number in range(pods // GANG):
        for plural, items in gang(f"g{number:05d}", kinds[number * 7 % len(kinds)], GANG).items():
            lists[plural] += items
    return lists
