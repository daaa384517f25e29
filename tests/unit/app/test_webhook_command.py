"""`volcano webhook-manager`: its flags."""

import click
import pytest
from click.testing import CliRunner

from volcano.admission.chain import DEFAULT_PATHS
from volcano.admission.review import Settings
from volcano.app.webhook_command import options_from, parse_paths, webhook_manager_command


def flags(**given):
    parameters = webhook_manager_command.make_context("webhook-manager", ["--webhook-url", "https://x"]).params
    return {**parameters, **given}


def test_the_flags_have_the_documented_defaults():
    options = options_from(flags())

    assert options.paths == DEFAULT_PATHS
    assert options.settings == Settings()
    assert (options.port, options.files, options.health_address) == (8443, None, "")


def test_the_flags_reach_the_rules():
    options = options_from(
        flags(max_queue_depth=3, enable_root_queue_protection=False, enable_queue_allocated_pods_check=True,
              scheduler_names=("a", "b"), feature_gates="SchedulingGatesQueueAdmission=true")
    )  # fmt: skip

    assert options.settings == Settings(("a", "b"), 3, False, True, True)


@pytest.mark.parametrize(
    "given",
    [
        {"webhook_url": ""},
        {"tls_cert_file": "a"},
        {"graceful_shutdown_time": "soon"},
        {"enabled_admission": "/jobs/mutate,/nope"},
    ],
)
def test_flags_that_make_no_sense_are_refused(given):
    with pytest.raises(click.UsageError):
        options_from(flags(**given))


def test_blank_paths_are_skipped():
    assert parse_paths(" /jobs/mutate, ,/jobs/validate,") == ("/jobs/mutate", "/jobs/validate")
    assert parse_paths("") == ()


def test_help_and_version_are_printed():
    runner = CliRunner()

    assert "--enabled-admission" in runner.invoke(webhook_manager_command, ["--help"]).output
    assert runner.invoke(webhook_manager_command, ["--version"]).exit_code == 0
    assert runner.invoke(webhook_manager_command, ["--port", "0"]).exit_code == 2
