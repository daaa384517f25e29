"""Baseline checks of what a pod shares with its machine: namespaces, folders, ports, Windows host processes."""

from __future__ import annotations

from volcano.embedded.apiserver.admitting.pod_security.pod_parts import (
    PodParts,
    Violation,
    counted,
    part,
    plural,
    quoted,
)


def host_namespaces(pod: PodParts) -> Violation | None:
    shared = [f"{name}=true" for name in ("hostNetwork", "hostPID", "hostIPC") if pod.spec.get(name)]
    return Violation("host namespaces", ", ".join(shared)) if shared else None


def host_path_volumes(pod: PodParts) -> Violation | None:
    names = [str(each.get("name", "")) for each in pod.spec.get("volumes") or () if each.get("hostPath") is not None]
    return Violation("hostPath volumes", counted(names, "volume")) if names else None


def host_ports(pod: PodParts) -> Violation | None:
    names: list[str] = []
    ports: set[int] = set()
    for container in pod.containers():
        used = {int(port.get("hostPort") or 0) for port in container.get("ports") or ()} - {0}
        if used:
            names.append(str(container.get("name", "")))
            ports |= used
    if not names:
        return None
    word = plural(len(ports), "hostPort")
    listed = ", ".join(sorted(map(str, ports)))
    return Violation(word, f"{counted(names)} {plural(len(names), 'uses', 'use')} {word} {listed}")


def host_probes(pod: PodParts) -> Violation | None:
    """Probes and hooks run outside the pod: with a host, they reach what the pod itself may not."""
    names: list[str] = []
    hosts: set[str] = set()
    for container in pod.containers():
        lifecycle = part(container, "lifecycle")
        handlers = [part(container, f"{kind}Probe") for kind in ("liveness", "readiness", "startup")]
        handlers += [part(lifecycle, "postStart"), part(lifecycle, "preStop")]
        used = {str(part(each, way).get("host") or "") for each in handlers for way in ("httpGet", "tcpSocket")} - {""}
        if used:
            names.append(str(container.get("name", "")))
            hosts |= used
    if not names:
        return None
    uses = plural(len(names), "uses", "use")
    word = plural(len(hosts), "host")
    return Violation(
        "probe or lifecycle host", f"{counted(names)} {uses} probe or lifecycle {word} {quoted(sorted(hosts))}"
    )


def windows_host_process(pod: PodParts) -> Violation | None:
    setters = pod.setters(lambda security: part(security, "windowsOptions").get("hostProcess") is True)
    detail = f"{setters} must not set securityContext.windowsOptions.hostProcess=true"
    return Violation("hostProcess", detail) if setters else None
