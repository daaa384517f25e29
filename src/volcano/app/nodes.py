"""Which nodes the embedded system has: what the options of app.node_options mean on this machine, checked."""

from __future__ import annotations

import dataclasses
import os
import pwd
import re
import socket
import stat
from pathlib import Path
from typing import Any

import click

from volcano.api.manifests import ManifestError, load_documents
from volcano.api.names import label_value_problems, qualified_name_problems
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.app.machine_cpus import machine_cpus
from volcano.app.machine_devices import DEVICES_ANNOTATION, machine_devices, parse_claim_devices
from volcano.app.node_options import NodeOptions, process_count
from volcano.embedded.agent.containers.images import ImagesError, ImagesFile
from volcano.embedded.agent.containers.process_settings import UNPRIVILEGED_USER, ProcessSettings, usual_user
from volcano.embedded.agent.kernel.file_rights import may
from volcano.embedded.agent.node.capacity import machine_capacity
from volcano.embedded.agent.node.settings import SIMULATED_CAPACITY, NodeSettings, NodeShape, simulated_nodes
from volcano.embedded.agent.process_agent import api_server_of


def capacity_of(options: NodeOptions) -> dict[str, str]:
    """Amounts that were given, checked."""
    amounts = {"cpu": options.node_cpu, "memory": options.node_memory}
    amounts |= _pairs(options.node_resources, "--node-resources")
    for resource, amount in amounts.items():
        try:
            if amount and parse_quantity(amount).nanos < 0:
                raise click.BadParameter(f"{resource}: {amount} is negative")
        except QuantityError as error:
            raise click.BadParameter(f"{resource}: {amount!r}: {error}") from error
    return {resource: amount for resource, amount in amounts.items() if amount}


def labels_of(options: NodeOptions) -> dict[str, str]:
    labels = _pairs(options.node_labels, "--node-labels")
    for key, value in labels.items():
        wrong = [*qualified_name_problems(key), *label_value_problems(value)]
        if wrong:
            raise click.BadParameter(f"{key}={value}: {wrong[0]}", param_hint="--node-labels")
    return labels


def simulated_settings(options: NodeOptions) -> NodeSettings | None:
    """The simulated nodes, from a count and from a file."""
    listed = _listed_nodes(options)
    if not options.simulated_nodes and not listed:
        return None
    counted = simulated_nodes(options.simulated_nodes, capacity=capacity_of(options), labels=labels_of(options))
    return dataclasses.replace(counted, nodes=(*counted.nodes, *listed))


def process_settings(options: NodeOptions, folder: Path, *, given: bool) -> tuple[NodeSettings, ProcessSettings] | None:
    """The nodes that run pods as processes, and how; None when there are none."""
    count = process_count(options, given=given)
    if not count:
        return None
    directory = folder / "agent"
    stated = capacity_of(options)
    host = node_name(socket.gethostname())
    names = [host] if count == 1 else [f"{host}-{index}" for index in range(count)]
    cards = machine_devices(
        names, stated, is_wanted=options.devices, by_claims=parse_claim_devices(options.claim_devices)
    )
    cpus = machine_cpus(
        manager=options.cpu_manager_policy,
        topology=options.topology_manager_policy,
        reserved=options.system_reserved,
        tree=options.device_path,
        nodes=count,
    )
    capacity, labels = {**machine_capacity(directory), **stated}, labels_of(options)
    shapes = tuple(
        NodeShape(
            name,
            {**capacity, **cards.amounts(name)},
            {"kubernetes.io/hostname": name, **labels},
            {DEVICES_ANNOTATION: cards.annotation},
            allocatable=cpus.allocatable(capacity["cpu"]),
        )
        for name in names
    )
    try:
        images = ImagesFile(Path(options.images)) if options.images else None
    except (OSError, ImagesError) as error:
        raise click.BadParameter(str(error), param_hint="--images") from error
    network: Any = options.pod_network
    processes = ProcessSettings(
        directory,
        pod_network=network,
        images_file=images,
        hidden=(folder,),
        writable=writable_folders(options),
        default_user=default_user(options),
        api_server=lambda: api_server_of(folder / "kubeconfig"),
        cards=cards.inventory,
        cpus=cpus.pool,
    )
    for note in (*cards.notes, *cpus.notes, *_unwritable(processes.writable, processes.default_user)):
        click.echo(f"note: {note}", err=True)
    return NodeSettings(shapes), processes


def default_user(options: NodeOptions) -> tuple[int, int] | None:
    """The user and the group of pods that state none; None: those of this process."""
    if not options.pods_as:
        return usual_user()
    if os.geteuid() != 0:
        raise click.BadParameter("only root can run pods as another user", param_hint="--pods-as")
    if options.pods_as == str(UNPRIVILEGED_USER[0]):
        return UNPRIVILEGED_USER
    try:
        found = pwd.getpwuid(int(options.pods_as)) if options.pods_as.isdecimal() else pwd.getpwnam(options.pods_as)
    except (KeyError, OverflowError):
        raise click.BadParameter(f"this machine has no user {options.pods_as!r}", param_hint="--pods-as") from None
    return (found.pw_uid, found.pw_gid) if found.pw_uid != 0 else None


def writable_folders(options: NodeOptions) -> tuple[Path, ...]:
    """Checked: the whole machine is not a folder to give to pods."""
    if "/" in options.writable:
        raise click.BadParameter("the machine's root cannot be writable", param_hint="--writable")
    return tuple(Path(each) for each in options.writable)


def _unwritable(folders: tuple[Path, ...], user: tuple[int, int] | None) -> list[str]:
    """Notes about folders of --writable in which the user of pods may not write."""
    if user is None:
        return []
    closed = [each for each in folders if not may(stat.S_IWOTH | stat.S_IXOTH, each.stat(), user[0], (user[1],))]
    return [
        f"--writable {each}: pods run as user {user[0]}, who may not write there; "
        f"`chown {user[0]} {each}` lets them, or --pods-as root"
        for each in closed
    ]


def node_name(hostname: str) -> str:
    """A machine's name as a node may be called."""
    cleaned = re.sub(r"[^a-z0-9.-]+", "-", hostname.lower()).strip("-.")
    return cleaned[:60].strip("-.") or "node"


def _listed_nodes(options: NodeOptions) -> tuple[NodeShape, ...]:
    if not options.nodes_file:
        return ()
    try:
        documents = load_documents(Path(options.nodes_file).read_bytes(), source=options.nodes_file)
    except (OSError, ManifestError) as error:
        raise click.BadParameter(str(error), param_hint="--nodes-file") from error
    shapes = []
    for number, document in enumerate(documents, 1):
        metadata = document.get("metadata") or {}
        if document["kind"] != "Node" or not metadata.get("name"):
            raise click.BadParameter(f"{options.nodes_file}, document {number} is not a Node with a name")
        status = document.get("status") or {}
        capacity = {**SIMULATED_CAPACITY, **(status.get("capacity") or status.get("allocatable") or {})}
        shapes.append(
            NodeShape(metadata["name"], capacity, metadata.get("labels") or {}, metadata.get("annotations") or {},
                      tuple((document.get("spec") or {}).get("taints") or ()), document)
        )  # fmt: skip
    return tuple(shapes)


def _pairs(text: str, option: str) -> dict[str, str]:
    pairs = {}
    for item in filter(None, text.split(",")):
        name, equals, value = item.strip().partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{item!r} is not name=value", param_hint=option)
        pairs[name] = value
    return pairs
