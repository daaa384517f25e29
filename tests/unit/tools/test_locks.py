"""The locked versions fit what pyproject.toml asks for, and the SBOM and the audit say what they must."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
from tools.locks import HOW, LOCKS, ROOT, Locked, bill_of_materials, normal, read_lock, report

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize(
    ("file", "wanted"),
    [
        ("run.txt", PROJECT["dependencies"]),
        ("dev.txt", [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]),
    ],
)
def test_every_dependency_is_locked_at_a_version_that_fits(file: str, wanted: list[str]):
    locked: dict[str, list[Locked]] = {}
    for each in read_lock(LOCKS / file):
        assert each.hashes, each
        locked.setdefault(each.name, []).append(each)
    for text in wanted:
        requirement = Requirement(text)
        found = locked.get(normal(requirement.name), [])
        assert found, f"{text} is not in {file}: {HOW}"
        assert all(requirement.specifier.contains(each.version, prereleases=True) for each in found), f"{text}: {HOW}"


def test_the_bill_of_materials_lists_every_package_with_its_hashes():
    bill = bill_of_materials("1.2.3", [Locked("b", "2", ("ff",)), Locked("a", "1", ("aa", "bb"))])

    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", "1.2.3")
    assert [each["purl"] for each in bill["components"]] == ["pkg:pypi/a@1", "pkg:pypi/b@2"]
    assert [each["content"] for each in bill["components"][0]["hashes"]] == ["aa", "bb"]
    assert bill["dependencies"][0]["dependsOn"] == ["pkg:pypi/a@1", "pkg:pypi/b@2"]


def test_an_audit_fails_for_weaknesses_and_says_when_it_could_not_look(capsys: pytest.CaptureFixture[str]):
    weak = (
        '{"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "CVE-1"}]}, {"name": "b", "version": "2"}]}'
    )

    assert report(weak, "") == 1
    assert "a 1 has the known weakness CVE-1" in capsys.readouterr().out
    assert report('{"dependencies": []}', "") == 0
    assert report("", "connection refused") == 0
    assert "NOT AUDITED" in capsys.readouterr().out
