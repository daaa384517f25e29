"""Probes and lifecycle hooks of a container."""

from __future__ import annotations

from typing import Final

from volcano.api import names
from volcano.api.fields import Field

HANDLERS: Final = ("exec", "httpGet", "tcpSocket", "grpc")
HOOKS: Final = ("exec", "httpGet", "tcpSocket", "sleep")
COUNTS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
SIGNALS: Final = frozenset(
    {
        "SIGABRT", "SIGALRM", "SIGBUS", "SIGCHLD", "SIGCLD", "SIGCONT", "SIGFPE", "SIGHUP", "SIGILL", "SIGINT", "SIGIO",
        "SIGIOT", "SIGKILL", "SIGPIPE", "SIGPOLL", "SIGPROF", "SIGPWR", "SIGQUIT", "SIGRTMAX", "SIGRTMIN", "SIGSEGV",
        "SIGSTKFLT", "SIGSTOP", "SIGSYS", "SIGTERM", "SIGTRAP", "SIGTSTP", "SIGTTIN", "SIGTTOU", "SIGURG", "SIGUSR1",
        "SIGUSR2", "SIGVTALRM", "SIGWINCH", "SIGXCPU", "SIGXFSZ",
        *(f"SIGRTMIN+{n}" for n in range(1, 16)), *(f"SIGRTMAX-{n}" for n in range(1, 15)),
    }
)  # fmt: skip
WINDOWS_SIGNALS: Final = frozenset({"SIGKILL", "SIGTERM"})


def check_probes(container: Field, grace: int) -> None:
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if container.has(name):
            _check_probe(container.at(name), name, grace)


def check_lifecycle(lifecycle: Field, grace: int, os_name: str | None) -> None:
    for name in ("postStart", "preStop"):
        if lifecycle.has(name):
            _check_handler(lifecycle.at(name), HOOKS, grace)
    if lifecycle.has("stopSignal"):
        place = lifecycle.at("stopSignal")
        allowed = WINDOWS_SIGNALS if os_name == "windows" else SIGNALS
        if os_name is None:
            place.forbidden("may not be set for containers with empty `spec.os.name`")
        elif os_name in ("linux", "windows") and place.as_text() not in allowed:
            place.unsupported(sorted(allowed))


def _check_probe(probe: Field, name: str, grace: int) -> None:
    _check_handler(probe, HANDLERS, grace)
    for count in COUNTS:
        if probe.number(count) < 0:
            probe.at(count).invalid("must be greater than or equal to 0")
    own_grace = probe.at("terminationGracePeriodSeconds")
    seconds = own_grace.as_number()
    if seconds is not None and seconds <= 0:
        own_grace.invalid("must be greater than 0")
    if name == "readinessProbe":
        if seconds is not None:
            own_grace.invalid("must not be set for readinessProbes")
    elif (probe.number("successThreshold") or 1) != 1:
        probe.at("successThreshold").invalid("must be 1")


def _check_handler(place: Field, kinds: tuple[str, ...], grace: int) -> None:
    given = [kind for kind in kinds if place.has(kind)]
    if not given:
        place.required("must specify a handler type")
        return
    for extra in given[1:]:
        place.at(extra).forbidden("may not specify more than 1 handler type")
    handler = place.at(given[0])
    match given[0]:
        case "exec":
            if not handler.texts("command"):
                handler.at("command").required()
        case "httpGet":
            _check_http_get(handler)
        case "tcpSocket":
            check_port(handler.at("port"))
        case "grpc":
            port = handler.number("port")
            for problem in names.port_number_problems(port):
                handler.at("port").invalid(problem, port)
        case "sleep":
            seconds = handler.number("seconds")
            if not 0 <= seconds <= grace:
                handler.invalid(f"must be non-negative and less than terminationGracePeriodSeconds ({grace})", seconds)


def _check_http_get(handler: Field) -> None:
    check_port(handler.at("port"))
    handler.at("scheme").one_of("HTTP", "HTTPS")
    for header in handler.each("httpHeaders"):
        name = header.text("name")
        for problem in names.header_name_problems(name):
            handler.at("httpHeaders").invalid(problem, name)


def check_port(place: Field) -> None:
    """A number, or the name of one of the container's ports."""
    if isinstance(place.value, str):
        place.check(names.port_name_problems(place.value))
    else:
        number = place.as_number() or 0
        for problem in names.port_number_problems(number):
            place.invalid(problem, number)
