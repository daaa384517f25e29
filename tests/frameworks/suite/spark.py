"""Spark: client and cluster mode with Spark's own feature step, and two applications that share a queue."""

from tests.frameworks.framework import Framework
from tests.running_server import Client
from tests.system.real_system import PODS, wait_until

GROUPS = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups"


def works(api: Client) -> None:
    """Spark made a PodGroup for each application, and the second driver started after the first had ended."""
    wait_until(lambda: _phases(api) == {"Completed"}, "every PodGroup is Completed")  # written some seconds later
    ended, started = (
        api.get(f"{PODS}/{name}").body["status"]["containerStatuses"][0]["state"]["terminated"][moment]
        for name, moment in (("first", "finishedAt"), ("second", "startedAt"))
    )
    assert ended <= started, f"the first ended at {ended}, the second started at {started}"


def _phases(api: Client) -> set[str]:
    return {group["status"]["phase"] for group in api.get(GROUPS).body["items"]}


FRAMEWORK = Framework("spark", megabytes=480, programs=("java=openjdk-17-jre-headless",), works=works, run_seconds=1500)
