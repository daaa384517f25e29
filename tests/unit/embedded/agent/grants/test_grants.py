"""No card is ever granted twice, over random sequences of pods, ends, kills and cards that come and go."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.api.core import ResourceClaim
from volcano.api.decode import decode
from volcano.api.kubelet import AgentPod
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.embedded.agent.devices.cards import MachineCard
from volcano.embedded.agent.devices.detection import FoundCards
from volcano.embedded.agent.devices.inventory import CardInventory
from volcano.embedded.agent.grants.grants import Grants
from volcano.embedded.agent.grants.ledger import GRANT_FILE
from volcano.embedded.agent.grants.pod_grant import Ungranted, divided, needed
from volcano.embedded.agent.storage.removal import remove_tree
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import InProcess, User

GPU = "nvidia.com/gpu"


def found(*numbers: int) -> FoundCards:
    return FoundCards(
        tuple(
            MachineCard(f"nvidia-{n}", "nvidia", GPU, n, f"GPU-{n}", numa=n // 2, files=(f"nvidia{n}",))
            for n in numbers
        ),
        frozenset({"nvidia"}),
    )


def a_pod(
    uid: str, *amounts: int, init: tuple[tuple[int, str], ...] = (), claims: Any = (), **container: Any
) -> AgentPod:
    def made(name: str, amount: int, policy: str = "") -> Any:
        limits = {"limits": {GPU: str(amount)}} if amount else {}
        return {"name": name, "resources": {**limits, **({"claims": claims} if claims else {})}, **container} | (
            {"restartPolicy": policy} if policy else {}
        )

    body = {
        "metadata": {"name": uid, "namespace": "default", "uid": uid},
        "spec": {
            "nodeName": "n",
            "containers": [made(f"c{place}", amount) for place, amount in enumerate(amounts)],
            "initContainers": [made(f"i{place}", amount, policy) for place, (amount, policy) in enumerate(init)],
            "resourceClaims": [{"name": each["name"], "resourceClaimName": each["name"]} for each in claims],
        },
    }
    return decode(AgentPod, msgspec.json.encode(body))


def a_client() -> Client:
    server = ApiServer(MemoryStore(), clock=SystemClock())
    return Client(InProcess(server.handle, User("admin", ("system:masters",))))


def grants_in(folder: Path, inventory: CardInventory | None) -> Grants:
    grants = Grants(a_client(), folder, inventory)
    grants.ledger.open()
    return grants


def test_containers_of_a_pod_see_their_own_cards_and_init_containers_those_of_later_ones():
    pod = a_pod("p", 1, 2, init=((2, ""), (1, "Always")))

    assert needed(pod, GPU) == 4
    assert divided(pod, GPU, ["a", "b", "c", "d"]) == {
        "i0": ("a", "b"), "i1": ("a",), "c0": ("b",), "c1": ("c", "d"),
    }  # fmt: skip


def test_a_container_without_cards_sees_none_and_a_privileged_one_all(tmp_path):
    grants, present = grants_in(tmp_path, CardInventory(found(0, 1), ["n"])), ("nvidia0", "nvidia1", "dri/card9")
    pod = a_pod("p", 1, 0)
    asyncio.run(grants.assign(pod))
    first, second = pod.spec.containers

    assert grants.variables(pod, first) == {"CUDA_VISIBLE_DEVICES": "GPU-0", "NVIDIA_VISIBLE_DEVICES": "GPU-0"}
    assert grants.device_files(pod, first, present) == ("nvidia0", "dri/card9")
    assert grants.variables(pod, second) == {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}
    assert grants.device_files(pod, second, present) == ("dri/card9",)
    privileged = a_pod("q", 0, securityContext={"privileged": True})
    assert grants.variables(privileged, privileged.spec.containers[0]) == {}
    assert grants.device_files(privileged, privileged.spec.containers[0], present) == present


def test_without_an_inventory_nothing_is_hidden(tmp_path):
    grants, pod = grants_in(tmp_path, None), a_pod("p", 1)
    asyncio.run(grants.assign(pod))

    assert grants.variables(pod, pod.spec.containers[0]) == {}
    assert grants.device_files(pod, pod.spec.containers[0], ("nvidia0",)) == ("nvidia0",)
    assert not (tmp_path / "p").exists()


def test_cards_of_one_numa_node_are_preferred(tmp_path):
    grants = grants_in(tmp_path, CardInventory(found(0, 1, 2, 3), ["n"]))
    asyncio.run(grants.assign(a_pod("first", 1)))
    asyncio.run(grants.assign(a_pod("second", 2)))
    asyncio.run(grants.assign(a_pod("third", 1)))

    held = {uid: sorted(grant.cards) for uid, grant in grants.ledger.grants.items()}
    assert held == {"first": ["nvidia-0"], "second": ["nvidia-2", "nvidia-3"], "third": ["nvidia-1"]}


async def claims_of_two_pods(folder: Path, inventory: CardInventory) -> Grants:
    server = ApiServer(MemoryStore(), clock=SystemClock())
    await server.start()
    client = Client(InProcess(server.handle, User("admin", ("system:masters",))))
    grants = Grants(client, folder, inventory)
    kind = resource_type(ResourceClaim)
    for name, users in (("one", ("p", "q")), ("two", ("r",))):
        spec = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "nvidia-gpu.volcano.sh"}}]}}
        await client.create(kind, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
        result = {"request": "gpu", "driver": "devices.volcano.sh", "pool": "n", "device": "nvidia-3"}
        status = {
            "allocation": {"devices": {"results": [result]}},
            "reservedFor": [{"resource": "pods", "name": user, "uid": user} for user in users],
        }
        await client.patch(kind, Key("default", name), {"status": status}, subresource="status")
    one, two = [{"name": "one"}], [{"name": "two"}]
    with pytest.raises(Ungranted, match="not reserved"):
        await grants.assign(a_pod("stranger", 0, claims=one))
    await grants.assign(a_pod("p", 0, claims=one))
    await grants.assign(a_pod("q", 0, claims=one))  # a shared claim shares its card
    with pytest.raises(Ungranted, match="another claim"):
        await grants.assign(a_pod("r", 0, claims=two))
    with pytest.raises(Ungranted, match="3 of 3 are free"):
        await grants.assign(a_pod("s", 4))  # the fourth is for claims
    return grants


def test_a_card_of_a_claim_goes_to_the_pods_of_that_claim_only(tmp_path):
    inventory = CardInventory(found(0, 1, 2, 3), ["n"], by_claims=1)

    grants = asyncio.run(claims_of_two_pods(tmp_path, inventory))

    pod = a_pod("p", 0, claims=[{"name": "one"}])
    assert grants.variables(pod, pod.spec.containers[0])["CUDA_VISIBLE_DEVICES"] == "GPU-3"
    assert set(grants.ledger.holders_of("nvidia-3")) == {"p", "q"}


def test_a_damaged_record_is_reported_and_stops_nothing(tmp_path, caplog):
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / GRANT_FILE).write_text("{")

    grants_in(tmp_path, CardInventory(found(0), ["n"]))

    assert "what pod p was granted cannot be read" in caplog.text


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("pod"), st.integers(0, 3)),
            st.tuples(st.just("end"), st.integers(0, 30)),
            st.tuples(st.just("kill"), st.just(0)),
            st.tuples(st.just("cards"), st.integers(0, 15)),
        ),
        max_size=40,
    )
)
def test_no_card_is_granted_twice(steps):
    with tempfile.TemporaryDirectory() as name:
        folder, number = Path(name), 0
        inventory = CardInventory(found(0, 1, 2, 3), ["n"])
        grants = grants_in(folder, inventory)
        running: dict[str, frozenset[str]] = {}
        for kind, value in steps:
            if kind == "pod":
                number += 1
                uid = f"pod-{number}"
                there = {each.card.id for each in inventory.of("n")}
                free = there - {card for cards in running.values() for card in cards}
                try:
                    asyncio.run(grants.assign(a_pod(uid, value)))
                except Ungranted:
                    assert value > len(free)
                else:
                    grant = grants.ledger.get(uid)
                    running[uid] = grant.cards if grant is not None else frozenset()
                    assert len(running[uid]) == value and running[uid] <= free
            elif kind == "end" and running:
                uid = sorted(running)[value % len(running)]
                remove_tree(folder / uid)
                grants.release(uid)
                del running[uid]
            elif kind == "kill":
                inventory = CardInventory(found(0, 1, 2, 3), ["n"])
                grants = grants_in(folder, inventory)
            elif kind == "cards":
                inventory.update(found(*(n for n in range(4) if value >> n & 1)))
            assert grants.ledger.held_cards == {card for cards in running.values() for card in cards}
