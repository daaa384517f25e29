"""Ask an oracle about every recorded case again, and write its answers: `record.py pods|cron|devices <binary>`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent.parent.parent / "tests/unit/api/data"
GO_STRUCT = re.compile(r"^(\w+ value): [{\[].*?[}\]]: (?=[a-zA-Z`])")


DEVICES = RECORDS.parent.parent / "scheduler/core/dra/data/allocations.json"


def main(which: str, binary: str) -> None:
    if which == "devices":
        record_devices(binary)
        return
    record = RECORDS / {"pods": "pod_templates.json", "cron": "cron_times.json"}[which]
    cases: list[dict[str, Any]] = json.loads(record.read_text())
    questions = [case["template"] for case in cases] if which == "pods" else [case["question"] for case in cases]
    text = "\n".join(json.dumps(question) for question in questions) + "\n"
    answered = subprocess.run([binary], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    for case, line in zip(cases, answered, strict=True):
        answer = json.loads(line)
        if which == "pods":
            case["errors"] = sorted({(e["path"], e["type"], without_struct(e["body"])) for e in answer})
        else:
            case["answer"] = {key: answer[key] for key in ("times", "error") if key in answer}
    lines = ",\n".join(json.dumps(case, sort_keys=True, ensure_ascii=False) for case in cases)
    record.write_text(f"[\n{lines}\n]\n")
    print(f"{len(cases)} cases in {record}")


def record_devices(binary: str) -> None:
    """The clusters are generated; what is kept is which devices each claim got."""
    sys.path.insert(0, str(Path(__file__).parent.parent.parent))
    from tests.unit.scheduler.core.dra.device_clusters import DeviceCluster

    number = len(json.loads(DEVICES.read_text()))
    questions = [json.dumps(DeviceCluster(seed).question()) for seed in range(number)]
    text = "\n".join(questions) + "\n"
    answered = subprocess.run([binary], input=text, capture_output=True, text=True, check=True).stdout.splitlines()
    lines = ",\n".join(json.dumps(devices_of(json.loads(line))) for line in answered)
    DEVICES.write_text(f"[\n{lines}\n]\n")
    print(f"{number} clusters in {DEVICES}")


def devices_of(answer: dict[str, Any]) -> Any:
    if answer.get("allocations") is None:
        return "error" if "error" in answer else None
    return [
        [
            [each[key] for key in ("request", "driver", "pool", "device")]
            for each in made["devices"].get("results") or ()
        ]
        for made in answer["allocations"]
    ]


def without_struct(message: str) -> str:
    """Kubernetes prints objects as its internal structs; what it says about them is what counts."""
    return GO_STRUCT.sub(r"\1: …: ", message)


if __name__ == "__main__":
    main(*sys.argv[1:])
