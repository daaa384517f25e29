"""No component may touch a kind that Volcano's own does not: the tables against the API reference's list of rights."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import needs
from volcano.install import rbac

REFERENCE = Path(__file__).parents[4] / "shared" / "spec" / "api.md"
GROUPS = {'""': "", "scheduling.*": "scheduling.volcano.sh"}
pytestmark = pytest.mark.skipif(
    not REFERENCE.is_file(), reason=needs.reason("../shared/spec is not here", "put the reference there")
)


def listed(component: str) -> set[tuple[str, str]]:
    """Group and resource of every row of a component's table."""
    text = REFERENCE.read_text().partition("## 15. RBAC")[2].partition(f"**{component}**")[2].partition("\n**")[0]
    found = set()
    for group, resources in re.findall(r"^\| (\S+) \| ([^|]+) \|", text, re.M):
        words = re.findall(r"[a-z]+(?:/[a-z]+)?", resources)
        found |= {(GROUPS.get(group, group), word) for word in words}
    return found


@pytest.mark.parametrize(
    ("component", "table"), [("Controllers", (*rbac.CONTROLLERS, *rbac.SHARDING)), ("Scheduler", rbac.SCHEDULER)]
)
def test_a_component_touches_no_other_kinds_than_volcanos(component: str, table: rbac.Rules):
    wanted = {(group, resource) for group, resources, _ in table for resource in resources.split()}

    # "their finalizers" and "jobs/status" are written in words there
    known = listed(component) | {(group, f"{name}/finalizers") for group, name in listed(component)}
    own = {("reservation.volcano.sh", "reservations"), ("reservation.volcano.sh", "reservations/status")}
    assert wanted - known - own == set()


def test_the_webhook_reads_queues_and_namespaces_and_for_reservations_nodes():
    assert {(group, resource) for group, resources, _ in rbac.ADMISSION for resource in resources.split()} == {
        ("scheduling.volcano.sh", "queues"),
        ("", "namespaces"),
        ("", "nodes"),
        ("reservation.volcano.sh", "reservations"),
    }
