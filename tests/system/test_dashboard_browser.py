"""The dashboard in a real browser, on a real `volcano up`: pages change without being loaded again."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.needs import CHROMEDRIVER
from tests.system.real_system import JOBS, Up, wait_until

pytestmark = CHROMEDRIVER
ACCOUNTS = "/api/v1/namespaces/{}/serviceaccounts"


def job(name: str, script: str, cpu: str = "50m") -> dict[str, Any]:
    container = {
        "name": "main",
        "image": "none",
        "command": ["sh", "-c", script],
        "resources": {"requests": {"cpu": cpu}},
    }
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": 1, "queue": "default", "tasks": [{"name": "w", "replicas": 1, "template": template}]},
    }


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    system = Up(tmp_path_factory.mktemp("dashboard"), "--dashboard", "0")
    system.start()
    yield system
    system.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1280,900"):
        options.add_argument(argument)
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


def link(up: Up) -> str:
    return (up.data / "dashboard-link").read_text().strip()


def place(up: Up) -> str:
    return link(up).partition("/login")[0]


def text(browser: Any) -> str:
    return str(browser.execute_script("return document.getElementById('main').innerText"))


def shows(browser: Any, *words: str) -> None:
    wait_until(lambda: all(word in text(browser) for word in words), f"the page shows {words}")


def press(browser: Any, label: str) -> None:
    """A link or a button, by what is written on it."""
    script = """const wanted = arguments[0];
        const found = [...document.querySelectorAll('main a, main button')].find(each => each.innerText.trim() === wanted);
        if (found) found.click(); return Boolean(found);"""
    wait_until(lambda: browser.execute_script(script, label), f"there is {label}")


def test_a_day_with_the_dashboard(up: Up, browser: Any):
    # A wrong token is refused; the link signs in.
    browser.get(f"{place(up)}/login?token=guess")
    shows(browser, "not accepted")
    browser.get(link(up))
    shows(browser, "Overview")
    assert browser.execute_script("return document.cookie") == ""  # out of reach of scripts

    # A job goes from waiting to completed on a page that is loaded once; its log is followed.
    assert up.api.create(JOBS, job("steps", "echo first line; sleep 20; echo last line")).status == 201
    assert up.api.create(JOBS, job("huge", "true", cpu="900")).status == 201
    browser.get(f"{place(up)}/jobs")
    browser.execute_script("window.loadedOnce = true")
    shows(browser, "steps", "Running")
    browser.execute_script("window.open(arguments[0], '_blank')", f"{place(up)}/jobs/default/steps/log")
    listing, log = browser.window_handles
    browser.switch_to.window(log)
    shows(browser, "first line")
    shows(browser, "last line")
    browser.close()
    browser.switch_to.window(listing)
    shows(browser, "Completed")
    assert browser.execute_script("return window.loadedOnce")

    # Another job waits, and the page says why and what would help.
    browser.get(f"{place(up)}/jobs/default/huge")
    shows(browser, "900 cpu", "waiting alone does not help", "Changes that let it run")


def test_a_job_is_suspended_and_resumed_and_a_queue_is_edited(up: Up, browser: Any):
    browser.get(link(up))
    assert up.api.create(JOBS, job("long", "sleep 600")).status == 201
    wait_until(lambda: up.phase("long") == "Running", "the job runs")
    browser.get(f"{place(up)}/jobs/default/long")
    press(browser, "Suspend")
    shows(browser, "vcctl job suspend long -n default")
    press(browser, "Suspend")
    shows(browser, "Aborted", "Resume")
    press(browser, "Resume")
    press(browser, "Resume")
    shows(browser, "Running")

    browser.get(f"{place(up)}/queues/default/edit")
    field = browser.find_element("name", "capability.cpu")
    field.send_keys("64")
    press(browser, "Review")
    shows(browser, "kubectl patch queue default")
    press(browser, "Change")
    shows(browser, "Waiting line")
    queue = up.api.get("/apis/scheduling.volcano.sh/v1beta1/queues/default").body
    assert queue["spec"]["capability"] == {"cpu": "64"}


def test_a_user_with_few_rights_sees_only_their_namespace(up: Up, browser: Any):
    api = up.api
    api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    body = job("mine", "sleep 600")
    body["metadata"]["namespace"] = "team"
    api.create(JOBS.replace("default", "team"), body)
    api.create(ACCOUNTS.format("team"), {"metadata": {"name": "viewer"}})
    rbac = "/apis/rbac.authorization.k8s.io/v1/namespaces/team"
    rules = [{"apiGroups": ["batch.volcano.sh"], "resources": ["jobs"], "verbs": ["get", "list"]}]
    api.create(f"{rbac}/roles", {"metadata": {"name": "see"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": "team"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "see"}
    api.create(f"{rbac}/rolebindings", {"metadata": {"name": "see"}, "roleRef": reference, "subjects": [subject]})
    token = api.create(f"{ACCOUNTS.format('team')}/viewer/token", {"spec": {}}).body["status"]["token"]
    browser.delete_all_cookies()

    browser.get(f"{place(up)}/login")
    browser.find_element("name", "token").send_keys(token)
    press(browser, "Sign in")
    shows(browser, "Overview")
    browser.get(f"{place(up)}/jobs")
    shows(browser, "mine")

    assert "1 job" in text(browser) and "huge" not in text(browser)
    browser.get(f"{place(up)}/jobs/default/huge")
    shows(browser, "Not allowed")
    browser.get(f"{place(up)}/jobs/team/mine/do/delete")
    press(browser, "Delete")
    shows(browser, "cannot delete")
