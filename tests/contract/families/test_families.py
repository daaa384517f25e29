"""The same questions through several client libraries, to both servers; the table in docs says what they found.

$VOLCANO_WRITE_FAMILIES=1 writes the rows of the table anew instead of comparing them.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.contract.families.environments import FAMILIES, PREPARE, Family
from tests.running_server import Client

PAGE = Path(__file__).resolve().parents[3] / "docs" / "contract-differences.md"
FEATURES = (
    "create and read", "list by label", "pages", "merge patch", "JSON patch", "strategic merge patch",
    "server-side apply", "watch", "informer", "protobuf", "conflicts", "what is missing", "custom objects", "discovery",
    "OpenAPI", "tokens", "leases", "leader election", "events", "finalizers", "delete a collection",
)  # fmt: skip
NOT_OFFERED = "–"
PROGRAM_SECONDS = 120
DEFINITION = {
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def test_a_family_finds_what_the_page_says(api: Client, namespace: str, family: Family, tmp_path: Path):
    command = family.command()
    if command is None:
        pytest.skip(f"{family.name} is not installed: {PREPARE}")
    api.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", DEFINITION)

    found = reported(command, api.kubeconfig, namespace, family.environment())

    assert {feature: text for feature, text in found.items() if text != "yes"} == {}
    assert set(found) <= set(FEATURES)
    row = f"| {family.name} | " + " | ".join(found.get(feature, NOT_OFFERED) for feature in FEATURES) + " |"
    if os.environ.get("VOLCANO_WRITE_FAMILIES"):
        write(family, row)
    assert row in PAGE.read_text().splitlines()


@pytest.fixture(params=FAMILIES, ids=lambda family: family.name)
def family(request: pytest.FixtureRequest) -> Family:
    found: Family = request.param
    return found


def reported(command: list[str], kubeconfig: Path, namespace: str, environment: dict[str, str]) -> dict[str, Any]:
    outcome = subprocess.run(
        [*command, str(kubeconfig), namespace],
        env={**os.environ, **environment, "KUBECONFIG": str(kubeconfig)},
        capture_output=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )
    assert outcome.returncode == 0, outcome.stderr.decode()
    found: dict[str, Any] = msgspec.json.decode(outcome.stdout)
    return found


def write(family: Family, row: str) -> None:
    """Replace the family's row, or add it below the table's head."""
    lines = [line for line in PAGE.read_text().splitlines() if not line.startswith(f"| {family.name} |")]
    head = next(number for number, line in enumerate(lines) if line.startswith("| Client |"))
    end = head + 2
    while end < len(lines) and lines[end].startswith("|"):
        end += 1
    lines.insert(end, row)
    PAGE.write_text("\n".join(lines) + "\n")
