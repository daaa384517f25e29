"""An installation: what is in it, the rights it gives, and that the chart in the repository is the one the code makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from volcano.api.scheme import resource_type
from volcano.app.manifests_command import manifests_command
from volcano.controllers.service.manager import make_controllers
from volcano.embedded.apiserver.admitting.pod_security.levels import LATEST_MINOR, violations
from volcano.embedded.apiserver.admitting.pod_security.pod_parts import PodParts
from volcano.install import rbac
from volcano.install.chart import chart_files
from volcano.install.installation import installation
from volcano.install.values import VALUES, UnknownValue, Values
from volcano.install.workloads import USER_ID
from volcano.scheduler.cache import FOLLOWED

CHART = Path(__file__).parents[3] / "deploy" / "helm" / "volcano"
COMPONENTS = ("scheduler", "controllers", "admission")


def objects(kind: str, **chosen: Any) -> dict[str, dict[str, Any]]:
    values = Values({path.replace("__", "."): value for path, value in chosen.items()})
    return {body["metadata"]["name"]: body for body in installation(values) if body["kind"] == kind}


def granted(table: rbac.Rules) -> set[tuple[str, str, str]]:
    return {
        (group, resource, verb)
        for group, resources, verbs in table
        for resource in resources.split()
        for verb in verbs.split()
    }


def test_whatever_a_component_follows_it_may_list_and_watch():
    followed = {
        "controllers": {kind for each in make_controllers() for kind in (*each.wakes_on, *each.reads)},
        "scheduler": set(FOLLOWED),
    }

    for kinds, table in ((followed["controllers"], rbac.CONTROLLERS), (followed["scheduler"], rbac.SCHEDULER)):
        needed = {(row.group, row.plural, verb) for row in map(resource_type, kinds) for verb in ("list", "watch")}
        assert needed - granted(table) == set()


def test_nobody_may_more_than_a_volcano_installation_gives():
    """Each right is one of the reference's, with patch where it has update."""
    reference = yaml.safe_load((Path(__file__).parent / "data" / "reference_rights.yaml").read_text())

    for name, table in (
        ("controllers", rbac.CONTROLLERS + rbac.SHARDING),
        ("scheduler", rbac.SCHEDULER),
        ("admission", rbac.ADMISSION),
    ):
        allowed = {
            (group, resource, verb)
            for group, resources, verbs in reference[name]
            for resource in resources.split()
            for verb in [*verbs.split(), *(["patch"] if "update" in verbs else [])]
        }
        assert granted(table) - allowed - RIGHTS_FOR_RESERVATIONS[name] == set(), name


RIGHTS_FOR_RESERVATIONS = {
    "controllers": set(),
    "scheduler": {
        *(("reservation.volcano.sh", "reservations", verb) for verb in ("list", "watch")),
        ("reservation.volcano.sh", "reservations/status", "patch"),
    },
    "admission": {("", "nodes", "list"), ("reservation.volcano.sh", "reservations", "list")},
}
"""Reservations are a kind of our own, which the reference does not have."""


def test_no_right_is_a_wildcard():
    for kind in ("ClusterRole", "Role"):
        for role in objects(kind, controllers__sharding=True).values():
            for rule in role["rules"]:
                assert "*" not in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]


def test_secrets_are_for_the_controllers_and_the_certificate_alone():
    roles = [*objects("ClusterRole").values(), *objects("Role").values()]

    having = {role["metadata"]["name"] for role in roles for rule in role["rules"] if "secrets" in rule["resources"]}

    assert having == {"volcano-controllers", "volcano-admission-init"}


def test_every_pod_is_as_restricted_as_can_be():
    templates = [body["spec"]["template"] for body in objects("Deployment").values()]
    templates += [body["spec"]["template"] for body in objects("Job").values()]

    assert len(templates) == 4
    for template in templates:
        pod = template["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert container["resources"]["requests"] and container["resources"]["limits"]["memory"]


def test_the_components_are_two_each_and_elect_a_leader():
    deployments = objects("Deployment")

    assert set(deployments) == {f"volcano-{name}" for name in COMPONENTS}
    for name, body in deployments.items():
        (container,) = body["spec"]["template"]["spec"]["containers"]
        assert body["spec"]["replicas"] == 2
        assert {"livenessProbe", "readinessProbe", "startupProbe"} <= set(container)
        assert ("--leader-elect=true" in container["args"]) == (name != "volcano-admission")
    assert set(objects("PodDisruptionBudget")) == set(deployments)
    assert set(objects("NetworkPolicy")) >= set(deployments)


def test_scheduler_and_controllers_are_one_process_when_asked_for():
    deployments = objects("Deployment", manager__enabled=True)

    assert set(deployments) == {"volcano-manager", "volcano-admission"}
    pod = deployments["volcano-manager"]["spec"]["template"]
    assert pod["spec"]["serviceAccountName"] == "volcano-controllers"
    ports = {port["name"]: port["containerPort"] for port in pod["spec"]["containers"][0]["ports"]}
    services = objects("Service", manager__enabled=True)
    for name in ("scheduler", "controllers"):
        service = services[f"volcano-{name}-service"]
        [apart] = objects("Service")[f"volcano-{name}-service"]["spec"]["ports"]
        [together] = service["spec"]["ports"]
        assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
        assert ports[together["targetPort"]] == together["port"] == apart["port"]
    for kind in ("PodDisruptionBudget", "NetworkPolicy"):
        assert set(deployments) <= set(objects(kind, manager__enabled=True))
        assert "volcano-scheduler" not in objects(kind, manager__enabled=True)


def test_the_one_process_has_the_rights_of_both_and_may_hold_both_leases():
    bound = {
        body["roleRef"]["name"]
        for kind in ("ClusterRoleBinding", "RoleBinding")
        for body in objects(kind, manager__enabled=True).values()
        if {"volcano-controllers"} == {subject["name"] for subject in body["subjects"]}
    }

    parts = ("scheduler", "controllers", "scheduler-lease", "controllers-lease")
    assert bound == {f"volcano-{part}" for part in parts}
    bound_apart = {body["metadata"]["name"] for body in objects("ClusterRoleBinding").values()}
    assert "volcano-manager" not in bound_apart


def test_admission_is_a_webhook_or_policies_or_nothing():
    webhook, policies, none = (
        {body["kind"] for body in installation(Values({"admission.mode": mode}))}
        for mode in ("webhook", "policies", "none")
    )

    assert "ValidatingWebhookConfiguration" in webhook and "MutatingAdmissionPolicy" not in webhook
    assert [
        body["metadata"]["name"] for body in installation(Values()) if body["kind"] == "ValidatingAdmissionPolicy"
    ] == ["submitter-validation-policy"]
    assert "ValidatingAdmissionPolicy" in policies and "ValidatingWebhookConfiguration" not in policies
    assert not {"ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy"} & none
    assert "volcano-admission" not in objects("Deployment", admission__mode="policies")


def test_service_monitors_are_made_when_asked_for():
    assert objects("ServiceMonitor") == {}
    assert set(objects("ServiceMonitor", metrics__serviceMonitor__enabled=True)) == {
        "volcano-scheduler",
        "volcano-controllers",
    }


def test_components_are_started_with_flags_they_know():
    from volcano.app.controllers_command import controller_manager_command
    from volcano.app.manager_command import manager_command
    from volcano.app.scheduler_command import scheduler_command
    from volcano.app.webhook_command import webhook_manager_command
    from volcano.app.webhook_secret_command import webhook_certificates_command

    commands = {
        command.name: command
        for command in (
            scheduler_command,
            controller_manager_command,
            manager_command,
            webhook_manager_command,
            webhook_certificates_command,
        )
    }
    commands = {name.removesuffix("-command"): command for name, command in commands.items()}
    together = objects("Deployment", manager__enabled=True)
    bodies = [*objects("Deployment").values(), *together.values(), *objects("Job").values()]
    for body in bodies:
        (container,) = body["spec"]["template"]["spec"]["containers"]
        name, *flags = container["args"]
        known = {option for parameter in commands[name].params for option in parameter.opts}
        assert {flag.partition("=")[0] for flag in flags} <= known, name


def test_an_unknown_value_is_refused():
    with pytest.raises(UnknownValue):
        Values({"scheduler.colour": "blue"})
    assert CliRunner().invoke(manifests_command, ["all", "--set", "nonsense"]).exit_code == 2


def test_the_command_prints_a_whole_installation():
    done = CliRunner().invoke(manifests_command, ["all", "--namespace", "batch", "--set", "scheduler.replicas=3"])

    bodies = list(yaml.safe_load_all(done.output))
    assert bodies[0]["metadata"]["name"] == "batch"
    assert next(b for b in bodies if b["kind"] == "Deployment")["spec"]["replicas"] == 3


def test_the_chart_in_the_repository_is_the_one_the_code_makes():
    """Otherwise: volcano manifests chart deploy/helm/volcano."""
    for path, content in chart_files().items():
        assert (CHART / path).read_text() == content, path


def test_every_value_is_documented():
    text = (CHART / "README.md").read_text()

    for value in VALUES:
        assert f"`{value.path}`" in text
        assert value.meaning.endswith((".", ")."))


def test_the_image_and_every_pod_of_the_chart_keep_the_level_restricted_as_the_images_own_user():
    dockerfile = (Path(__file__).parents[3] / "deploy" / "Dockerfile").read_text()
    assert f"USER {USER_ID}:{USER_ID}" in dockerfile.splitlines()
    everything = {"controllers__sharding": True, "dashboard__enabled": True, "history__enabled": True}
    templates = [
        body["spec"]["template"] for kind in ("Deployment", "Job") for body in objects(kind, **everything).values()
    ]
    templates += [body["spec"]["jobTemplate"]["spec"]["template"] for body in objects("CronJob", **everything).values()]

    assert len(templates) >= 6
    for template in templates:
        parts = PodParts(template["metadata"].get("annotations") or {}, template["spec"])
        assert violations(parts, "restricted", LATEST_MINOR) == []
        assert template["spec"]["securityContext"]["runAsUser"] == USER_ID
        for container in template["spec"]["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
