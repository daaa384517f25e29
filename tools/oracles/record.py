"""Ask an oracle about every recorded case again, and write its answers: `record.py pods|cron <binary>`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

RECORDS = Path(__file__).parent.parent.parent / "tests/unit/api/data"
GO_STRUCT = re.compile(r"^(\w+ value): [{\[].*?[}\]]: (?=[a-zA-Z`])")


def main(which: str, binary: str) -> None:
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


def without_struct(message: str) -> str:
    """Kubernetes prints objects as its internal structs; what it says about them is what counts."""
    return GO_STRUCT.sub(r"\1: …: ", message)


if __name__ == "__main__":
    main(*sys.argv[1:])
