"""Dask: a scheduler and its workers as tasks of one job."""

from tests.frameworks.framework import Framework
from tests.running_server import Client
from tests.system.real_system import JOBS


def works(api: Client) -> None:
    status = api.get(f"{JOBS}/dask").body["status"]
    assert status["state"]["phase"] == "Completed", status


FRAMEWORK = Framework("dask", megabytes=30, works=works)
