"""Kubernetes' CEL libraries (addresses, URLs, versions, quantities, formats): the same outcome in both servers' rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.bodies import a_crd
from tests.contract.test_custom_resources import CRDS, established
from tests.running_server import Client

GROUP = "expressions.example.com"
LINES = (Path(__file__).parent / "expressions.txt").read_text().splitlines()
CASES = [(line[6:], line[:6].strip()) for line in LINES if line and not line.startswith("#")]


@pytest.fixture(scope="module")
def asked(api: Client) -> Iterator[str]:
    """Where objects go whose number says which rule they are asked."""
    rules = [
        {"rule": f"self.number != {number} || ({source})", "message": f"number {number} is false"}
        for number, (source, _) in enumerate(CASES)
    ]
    spec = {"type": "object", "properties": {"number": {"type": "integer"}}, "x-kubernetes-validations": rules}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    made = api.create(CRDS, a_crd("cases", GROUP, schema=schema))
    assert made.status == 201, made.body
    established(api, f"cases.{GROUP}")
    yield f"/apis/{GROUP}/v1/namespaces/default/cases"
    api.delete(f"{CRDS}/cases.{GROUP}")


def outcome(api: Client, asked: str, number: int) -> str:
    case = {"apiVersion": f"{GROUP}/v1", "kind": "Case", "metadata": {"name": "case"}, "spec": {"number": number}}
    answer = api.create(asked, case, query={"dryRun": "All"})
    if answer.status == 201:
        return "true"
    assert answer.status == 422, answer.body
    return "false" if answer.body["message"].endswith(f"Invalid value: number {number} is false") else "error"


def test_every_expression_has_its_outcome(api: Client, asked: str):
    found = {source: outcome(api, asked, number) for number, (source, _) in enumerate(CASES)}

    assert found == dict(CASES)


def test_a_failure_says_why(api: Client, asked: str):
    reasons = {
        "ip('not an address').family() == 4": 'IP Address "not an address" parse error during conversion from string',
        "url('../relative').getScheme() == ''": 'parse "../relative": invalid URI for request',
        "ip('fe80::1%eth0').family() == 6": 'IP address "fe80::1%eth0" with zone value is not allowed',
        "ip('::ffff:1.2.3.4').family() == 6": 'IPv4-mapped IPv6 address "::ffff:1.2.3.4" is not allowed',
    }
    numbers = {source: number for number, (source, _) in enumerate(CASES)}
    for source, reason in reasons.items():
        case = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Case",
            "metadata": {"name": "case"},
            "spec": {"number": numbers[source]},
        }

        answer = api.create(asked, case)

        assert answer.status == 422 and reason in answer.body["message"]
