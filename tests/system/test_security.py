"""Who gets in, and what they may do."""

from __future__ import annotations

import stat
import threading
from collections.abc import Iterator

import pytest

from tests.running_server import Client, Running, running_server
from volcano.machinery.transport import User


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    tokens = {"letmein": User("tina", ("testers",))}
    with running_server(tokens=tokens) as running:
        yield running


@pytest.fixture(scope="module")
def admin(running: Running) -> Client:
    return Client(running.kubeconfig)


def rbac(admin: Client, name: str, rules: list, *subjects: dict) -> None:
    root = "/apis/rbac.authorization.k8s.io/v1"
    assert admin.create(f"{root}/clusterroles", {"metadata": {"name": name}, "rules": rules}).status == 201
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    body = {"metadata": {"name": name}, "roleRef": reference, "subjects": list(subjects)}
    assert admin.create(f"{root}/clusterrolebindings", body).status == 201


def user(name: str) -> dict:
    return {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": name}


def test_the_kubeconfig_and_keys_are_for_their_owner_only(running: Running):
    for path in (running.kubeconfig, *running.kubeconfig.with_name("pki").glob("*.key")):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_nobody_sees_only_health_and_version(running: Running):
    nobody = Client(running.kubeconfig, anonymous=True)

    assert nobody.get("/version").status == nobody.get("/readyz").status == 200
    for path in ("/api", "/apis", "/api/v1/pods", "/metrics", "/openapi/v2", "/"):
        answer = nobody.get(path)
        assert answer.status == 401
        assert answer.body["reason"] == "Unauthorized"


def test_a_wrong_token_is_not_taken_for_nobody(running: Running):
    assert Client(running.kubeconfig, token="guess").get("/version").status == 401


def test_headers_cannot_name_a_user(running: Running):
    nobody = Client(running.kubeconfig, anonymous=True)

    answer = nobody(
        "GET", "/api/v1/pods", headers={"x-remote-user": "system:admin", "impersonate-user": "system:admin"}
    )

    assert answer.status == 401


def test_a_token_is_its_user_and_may_do_what_roles_allow(running: Running, admin: Client):
    tina = Client(running.kubeconfig, token="letmein")
    assert tina.get("/api/v1/pods").status == 403

    rbac(
        admin,
        "testers-read",
        [{"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]}],
        {"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "testers"},
    )

    assert tina.get("/api/v1/pods").status == 200
    assert tina.get("/api/v1/pods", watch="true").status == 403
    assert tina.get("/api/v1/nodes").status == 403


def test_a_rule_can_be_for_one_name_or_one_subresource(running: Running, admin: Client):
    client = Client(running.kubeconfig_for("nora"))
    for name in ("mine", "yours"):
        admin.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": name}})
    rbac(
        admin, "nora",
        [
            {"verbs": ["get"], "apiGroups": [""], "resources": ["configmaps"], "resourceNames": ["mine"]},
            {"verbs": ["patch"], "apiGroups": [""], "resources": ["pods/status"]},
        ],
        user("nora"),
    )  # fmt: skip

    assert client.get("/api/v1/namespaces/default/configmaps/mine").status == 200
    assert client.get("/api/v1/namespaces/default/configmaps/yours").status == 403
    assert client.get("/api/v1/namespaces/default/configmaps").status == 403
    assert client.merge("/api/v1/namespaces/default/pods/none/status", {}).status == 404
    assert client.merge("/api/v1/namespaces/default/pods/none", {}).status == 403


def test_nobody_can_give_rights_they_do_not_have(running: Running, admin: Client):
    rules = [{"verbs": ["create", "update"], "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles", "rolebindings"]},
             {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]  # fmt: skip
    rbac(admin, "mallory", rules, user("mallory"))
    mallory = Client(running.kubeconfig_for("mallory"))
    roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles"

    modest = {"metadata": {"name": "modest"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]}
    greedy = {"metadata": {"name": "greedy"}, "rules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}]}
    binding = {
        "metadata": {"name": "up"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [user("mallory")],
    }

    assert mallory.create(roles, modest).status == 201
    assert mallory.create(roles, greedy).status == 403
    assert mallory.create(roles.replace("/roles", "/rolebindings"), binding).status == 403


def test_impersonation_needs_the_right_to_it(running: Running, admin: Client):
    bob = {"impersonate-user": "bob"}

    assert admin("GET", "/api/v1/pods", headers=bob).status == 403
    masters = {"impersonate-user": "bob", "impersonate-group": "system:masters"}
    assert admin("GET", "/api/v1/pods", headers=masters).status == 200
    eve = Client(running.kubeconfig_for("eve"))
    assert eve("GET", "/api/v1/pods", headers=masters).status == 403


def test_reviews_answer_for_me_and_for_others(running: Running, admin: Client):
    review = {"spec": {"resourceAttributes": {"verb": "get", "resource": "secrets", "namespace": "default"}}}
    path = "/apis/authorization.k8s.io/v1"

    assert admin.create(f"{path}/selfsubjectaccessreviews", review).body["status"]["allowed"] is True
    review["spec"]["user"] = "zoe"
    assert admin.create(f"{path}/subjectaccessreviews", review).body["status"]["allowed"] is False
    rules = admin.create(f"{path}/selfsubjectrulesreviews", {"spec": {"namespace": "default"}}).body["status"]
    assert rules["resourceRules"][0]["verbs"] == ["*"]
    token = admin.create("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "letmein"}}).body["status"]
    assert (token["authenticated"], token["user"]["username"]) == (True, "tina")


def test_a_service_accounts_token_dies_with_the_account(running: Running, admin: Client):
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    admin.create(accounts, {"metadata": {"name": "robot"}})
    token = admin.create(f"{accounts}/robot/token", {"spec": {"expirationSeconds": 600}}).body["status"]["token"]
    robot = Client(running.kubeconfig, token=token)
    who = robot.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", {}).body["status"]["userInfo"]
    assert who["username"] == "system:serviceaccount:default:robot"
    assert "system:serviceaccounts:default" in who["groups"]

    admin.delete(f"{accounts}/robot")

    assert robot.get("/api").status == 401


def test_a_tampered_token_is_refused(running: Running, admin: Client):
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    admin.create(accounts, {"metadata": {"name": "other"}})
    token = admin.create(f"{accounts}/other/token", {}).body["status"]["token"]
    head, body, signature = token.split(".")

    for bad in (f"{head}.{body}.", f"{head}.{body}x.{signature}", f"{head}.{body}", f"{head}..{signature}", "a.b.c"):
        assert Client(running.kubeconfig, token=bad).get("/api").status == 401


REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


@pytest.mark.parametrize("content_type", ["application/yaml", "application/apply-patch+yaml"])
@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"[" * 35_000, "nested deeper"),
        (b"- " * 35_000, "nested deeper"),
        (b"".join(b"k%d: 1\n" % n for n in range(270_000)), "more than"),
        (b"a: &a [x]\nb: *a\n", "aliases"),
    ],
    ids=["brackets", "dashes", "flat", "aliases"],
)
def test_yaml_that_is_too_deep_or_too_large_is_refused(running: Running, admin: Client, content_type, body, reason):
    path, method = REVIEW, "POST"
    if content_type.startswith("application/apply"):
        path, method = "/api/v1/namespaces/default/configmaps/deep?fieldManager=test", "PATCH"

    answer = admin(method, path, body, content_type=content_type)

    assert answer.status == 400, answer
    assert reason in answer.body["message"]


def test_numbers_to_the_base_of_60_are_texts(running: Running, admin: Client):
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: base60}\ndata: {a: 1:30, b: " + b"1:" * 100_000 + b"1}\n"

    answer = admin("POST", "/api/v1/namespaces/default/configmaps", body, content_type="application/yaml")

    assert answer.status == 201, answer
    assert answer.body["data"]["a"] == "1:30"


def test_others_are_answered_while_a_large_yaml_body_is_read(running: Running, admin: Client):
    """The event loop stays free: other requests are answered before the large one is."""
    lines = b"".join(b"  k%d: v\n" % n for n in range(45_000))
    body = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata:\n" + lines
    answers: list[str] = []

    def send_large() -> None:
        path = "/api/v1/namespaces/default/configmaps"
        status = Client(running.kubeconfig)("POST", path, body, content_type="application/yaml").status
        answers.append(f"large {status}")

    thread = threading.Thread(target=send_large)
    thread.start()
    assert admin.get("/api/v1/namespaces/default").status == 200
    answers.append("other")
    thread.join(60)

    assert answers == ["other", "large 201"]


@pytest.mark.parametrize("depth", [201, 35_000, 1_500_000])
def test_json_that_is_too_deep_is_refused(admin: Client, depth: int):
    for path, method, content_type in (
        (REVIEW, "POST", "application/json"),
        ("/api/v1/namespaces/default", "PATCH", "application/merge-patch+json"),
        ("/api/v1/namespaces/default", "PATCH", "application/strategic-merge-patch+json"),
        ("/api/v1/namespaces/default", "PATCH", "application/json-patch+json"),
        ("/api/v1/namespaces/default?fieldManager=t", "PATCH", "application/apply-patch+yaml"),
    ):
        answer = admin(method, path, b'{"a":' + b"[" * depth, content_type=content_type)

        assert answer.status == 400, (path, answer)
