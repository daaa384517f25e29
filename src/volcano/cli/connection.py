"""To the API server and back, once: the client on the one-shot transport, with errors as commands report them."""

from __future__ import annotations

import os
from collections.abc import Coroutine
from typing import Any, TypeVar

from volcano.api.errors import ApiError
from volcano.api.meta import JSON, Key
from volcano.api.resource_types import ResourceType
from volcano.cli.command_line import Called
from volcano.cli.failures import Failed
from volcano.machinery.client import Client
from volcano.machinery.kubeconfig import ConfigError, Endpoint, embedded_kubeconfig, load_endpoint
from volcano.machinery.one_shot import ANSWER_TIMEOUT_SECONDS, OneShot, finish
from volcano.machinery.transport import Request

T = TypeVar("T")
Items = list[JSON]
WAYS_TO_A_SYSTEM = """\
Start a system on this machine:  volcano up
Or name a cluster's kubeconfig:  --kubeconfig FILE, or export KUBECONFIG=FILE"""


class ApiConnection:
    """What commands need of the API, synchronously."""

    def __init__(self, endpoint: Endpoint, *, source: str = "", answer_seconds: float = ANSWER_TIMEOUT_SECONDS) -> None:
        self.endpoint, self._source = endpoint, source
        self._is_guess = source.startswith("Tried ")
        self.client = Client(OneShot(endpoint, answer_seconds=answer_seconds), agent="vcctl")

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        """A client call; whatever goes wrong ends the command with the server's own words."""
        try:
            return self.attempt(work)
        except ApiError as error:
            if self._is_guess and not error.is_status:
                told = f"{self.endpoint.server} answers, but it is no Kubernetes API server ({error.message})"
                raise Failed(f"{told}\n{self._source}{WAYS_TO_A_SYSTEM}") from error
            raise Failed(error.message) from error

    def attempt(self, work: Coroutine[Any, Any, T]) -> T:
        """The same, but the caller looks at API errors itself."""
        try:
            return finish(work)
        except ConnectionError as error:
            raise Failed(f"{error}\n{self._source}{WAYS_TO_A_SYSTEM}") from error
        except ConfigError as error:
            raise Failed(str(error)) from error

    def get(self, resource: ResourceType, namespace: str, name: str) -> JSON:
        return self.do(self.client.get_json(resource, Key(namespace, name)))

    def list(self, resource: ResourceType, namespace: str = "", **parameters: str) -> Items:
        return self.list_at(resource, namespace, **parameters)[0]

    def list_at(self, resource: ResourceType, namespace: str = "", **parameters: str) -> tuple[Items, str]:
        """The objects, and the revision they are of."""
        found = self.do(self.client.list_json(resource, namespace, **parameters))
        return list(found.get("items") or []), str((found.get("metadata") or {}).get("resourceVersion", ""))

    def create(self, resource: ResourceType, body: JSON) -> bytes:
        return self.do(self.client.create(resource, body))

    def delete(self, resource: ResourceType, namespace: str, name: str) -> None:
        self.do(self.client.delete(resource, Key(namespace, name)))

    def raw(self, method: str, path: str, body: bytes = b"", **query: str) -> bytes:
        headers = {"content-type": "application/json"} if body else {}
        request = Request(method, path, tuple(query.items()), headers, body)
        return self.do(self.client.raw(request)).body


def connect(called: Called) -> ApiConnection:
    """By --kubeconfig and --master, the usual places, or the embedded system's own kubeconfig."""
    return connect_to(called.values.get("kubeconfig") or "", called.values.get("master") or "")


def connect_to(kubeconfig: str, master: str, *, answer_seconds: float = ANSWER_TIMEOUT_SECONDS) -> ApiConnection:
    """The same, for commands that read their words themselves."""
    try:
        endpoint, source = _endpoint(kubeconfig, master)
        return ApiConnection(endpoint, source=source, answer_seconds=answer_seconds)
    except ConfigError as error:
        raise Failed(str(error)) from error


def _endpoint(kubeconfig: str, master: str) -> tuple[Endpoint, str]:
    """Where the API server is, and which places were looked at, for the message when it does not answer."""
    try:
        return load_endpoint(kubeconfig or None, server=master), _source(kubeconfig, master)
    except ConfigError as error:
        own = embedded_kubeconfig()
        if kubeconfig:
            raise
        if os.environ.get("KUBECONFIG"):
            raise ConfigError(f"{error}, which KUBECONFIG names\n{WAYS_TO_A_SYSTEM}") from error
        if own.is_file():
            return load_endpoint(own, server=master), f"Its address is from {own}.\n"
        address = os.environ.get("KUBERNETES_MASTER") or "http://localhost:8080"
        looked = f"Tried KUBECONFIG (not set), ~/.kube/config and {own} (not there), then {address}.\n"
        return Endpoint(server=address), looked


def _source(kubeconfig: str, master: str) -> str:
    """Where the address is from, as a line."""
    if master:
        return "Its address is from --master.\n"
    if kubeconfig:
        return f"Its address is from --kubeconfig {kubeconfig}.\n"
    if os.environ.get("KUBECONFIG"):
        return f"Its address is from KUBECONFIG={os.environ['KUBECONFIG']}.\n"
    return "Its address is from ~/.kube/config.\n"
