"""The node options of `up`, `run` and `agent`, as given; app.nodes makes nodes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click
import msgspec

from volcano.api.numa.hints import TOPOLOGY_POLICIES

F = TypeVar("F", bound=Callable[..., Any])
MAX_SIMULATED_NODES: Final = 100_000
MAX_PROCESS_NODES: Final = 64
CPU_POLICIES: Final = ("none", "static")
DEVICE_PATH: Final = "/sys/devices/system"


class NodeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The node options as given."""

    nodes: int = 1
    simulated_nodes: int = 0
    node_cpu: str = ""
    node_memory: str = ""
    node_resources: str = ""
    node_labels: str = ""
    nodes_file: str = ""
    pod_network: str = "auto"
    images: str = ""
    writable: tuple[str, ...] = ()
    pods_as: str = ""
    devices: bool = True
    claim_devices: str = "0"
    cpu_manager_policy: str = "none"
    topology_manager_policy: str = "none"
    system_reserved: str = ""
    device_path: str = DEVICE_PATH

    @property
    def are_plain(self) -> bool:
        """Whether they only say how many nodes there are, so that nothing can be wrong with them."""
        return self == NodeOptions(nodes=self.nodes, simulated_nodes=self.simulated_nodes)


CPU_OPTIONS: Final = (
    click.option("--cpu-manager-policy", type=click.Choice(CPU_POLICIES), default="none", show_default=True,
                 help="static: Guaranteed pods that ask for whole CPUs get them for themselves."),
    click.option("--topology-manager-policy", type=click.Choice(TOPOLOGY_POLICIES), default="none", show_default=True,
                 help="With static: how strictly the CPUs of a pod are kept on one NUMA node."),
    click.option("--system-reserved", default="", metavar="cpu=N",
                 help="With static: CPUs that no pod gets for itself [default: cpu=1]."),
    click.option("--device-path", default=DEVICE_PATH, show_default=True, type=click.Path(file_okay=False),
                 help="Where CPUs and NUMA nodes are read."),
)  # fmt: skip


def node_options(command: F) -> F:
    """The options that say which nodes there are."""
    options = [
        click.option("--nodes", type=click.IntRange(0, MAX_PROCESS_NODES), default=1, show_default=True,
                     help="Nodes that run pods as processes of this machine."),
        click.option("--simulated-nodes", type=click.IntRange(0, MAX_SIMULATED_NODES), default=0,
                     help="Nodes that only pretend to run pods; no process node then, unless --nodes is given too."),
        click.option("--node-cpu", default="", help="CPUs of each node (simulated: 32)."),
        click.option("--node-memory", default="", help="Memory of each node (simulated: 256Gi)."),
        click.option("--node-resources", default="", help="Further resources: cpu=8,nvidia.com/gpu=4."),
        click.option("--node-labels", default="", help="Labels of each node: zone=a,disk=ssd."),
        click.option("--nodes-file", default="", help="A file of Node objects to simulate."),
        click.option("--pod-network", type=click.Choice(["auto", "isolated", "host"]), default="auto",
                     show_default=True, help="Whether each pod has a network of its own."),
        click.option("--images", default="",
                     help="A file of what image names mean here; changes are taken up as they are saved."),
        click.option("--writable", multiple=True, type=click.Path(exists=True, file_okay=False, resolve_path=True),
                     help="A folder of this machine in which all pods may write; may be given several times."),
        click.option("--pods-as", default="", metavar="USER",
                     help="As root: the user as which pods without runAsUser run [default: 65532, who has no rights]."),
        click.option("--devices/--no-devices", default=True, show_default=True,
                     help="Whether GPUs and NPUs of this machine are found and handed out to pods."),
        click.option("--claim-devices", default="0", show_default=True, metavar="N|all",
                     help="How many of them claims hand out (a ResourceSlice); the others are extended resources."),
    ]  # fmt: skip
    for option in reversed((*options, *CPU_OPTIONS)):
        command = option(command)
    return command


def process_count(options: NodeOptions, *, given: bool) -> int:
    """`--simulated-nodes` alone means no process node; asked for explicitly, both kinds exist."""
    if (options.simulated_nodes or options.nodes_file) and not given:
        return 0
    return options.nodes
