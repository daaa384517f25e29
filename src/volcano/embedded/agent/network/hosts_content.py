"""The content of a pod's /etc/hosts: itself, the pods of its subdomain, services and aliases. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from volcano.api.kubelet import AgentPod
from volcano.api.service_network import SERVICE_DOMAIN

HEADER = "# Kubernetes-managed hosts file."
LOCAL = (
    "127.0.0.1\tlocalhost",
    "::1\tlocalhost ip6-localhost ip6-loopback",
    "fe00::0\tip6-localnet",
    "fe00::0\tip6-mcastprefix",
    "fe00::1\tip6-allnodes",
    "fe00::2\tip6-allrouters",
)


def hosts_file(pod: AgentPod, address: str, peers: Iterable[AgentPod], services: Iterable[tuple[str, str]] = ()) -> str:
    """The whole file; peers have every name that the svc plugin promises."""
    lines = [HEADER, *LOCAL]
    if address:
        lines.append(f"{address}\t{' '.join([*names_of(pod, pod.namespace)])}")
    heads: dict[str, list[str]] = {}
    for peer in peers:
        if peer.uid == pod.uid or not peer.status.pod_ip or peer.is_finished:
            continue
        lines.append(f"{peer.status.pod_ip}\t{' '.join(names_of(peer, pod.namespace))}")
    for peer in peers:
        if peer.spec.subdomain and peer.namespace == pod.namespace and not peer.is_finished:
            where = address if peer.uid == pod.uid else peer.status.pod_ip
            if where:
                heads.setdefault(peer.spec.subdomain, []).append(where)
    for head, addresses in sorted(heads.items()):
        lines += [
            f"{where}\t{head}.{pod.namespace}.{SERVICE_DOMAIN} {head}.{pod.namespace}.svc {head}" for where in addresses
        ]
    lines += [f"{where}\t{name}" for name, where in services]
    if pod.spec.host_aliases:
        lines.append("# Entries added by HostAliases.")
        lines += [f"{alias.ip}\t{' '.join(alias.hostnames)}" for alias in pod.spec.host_aliases]
    return "\n".join(lines) + "\n"


def names_of(pod: AgentPod, seen_from: str) -> list[str]:
    """The pod's names, the fully qualified one first, as resolvers expect. Short names only inside the namespace."""
    host, head = pod.hostname, pod.spec.subdomain
    if not head:
        return [host] if pod.namespace == seen_from else []
    full = f"{host}.{head}.{pod.namespace}.{SERVICE_DOMAIN}"
    short = [f"{host}.{head}.{pod.namespace}.svc", f"{host}.{head}.{pod.namespace}"]
    return [full, *short, f"{host}.{head}", host] if pod.namespace == seen_from else [full, *short]
