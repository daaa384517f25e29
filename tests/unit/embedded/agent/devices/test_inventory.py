"""Which node has which card, by which way, as cards come and go."""

from __future__ import annotations

from volcano.embedded.agent.devices.cards import MachineCard
from volcano.embedded.agent.devices.detection import FoundCards
from volcano.embedded.agent.devices.inventory import ALL_BY_CLAIMS, CardInventory


def cards(*numbers: int) -> FoundCards:
    return FoundCards(
        tuple(
            MachineCard(f"nvidia-{n}", "nvidia", "nvidia.com/gpu", n, f"GPU-{n}", files=(f"nvidia{n}",))
            for n in numbers
        ),
        frozenset({"nvidia"}),
    )


def ids(inventory: CardInventory, node: str, *, by_claims: bool) -> list[str]:
    return [each.card.id for each in inventory.of(node) if each.by_claims is by_claims]


def test_no_card_is_handed_out_by_both_ways():
    inventory = CardInventory(cards(0, 1, 2, 3), ["n"], by_claims=1)

    assert inventory.amounts("n") == {"nvidia.com/gpu": "3"}
    assert ids(inventory, "n", by_claims=True) == ["nvidia-3"]
    assert ids(inventory, "n", by_claims=False) == ["nvidia-0", "nvidia-1", "nvidia-2"]


def test_with_all_by_claims_there_is_no_extended_resource():
    inventory = CardInventory(cards(0, 1), ["n"], by_claims=ALL_BY_CLAIMS)

    assert inventory.amounts("n") == {}
    assert ids(inventory, "n", by_claims=True) == ["nvidia-0", "nvidia-1"]


def test_nodes_of_one_machine_share_its_cards():
    inventory = CardInventory(cards(0, 1, 2), ["a", "b", "c", "d"])

    assert [inventory.amounts(node)["nvidia.com/gpu"] for node in "abcd"] == ["1", "1", "1", "0"]


def test_a_stated_amount_limits_the_cards():
    inventory = CardInventory(cards(0, 1, 2), ["n"], limits={"nvidia.com/gpu": 2})

    assert inventory.amounts("n") == {"nvidia.com/gpu": "2"}
    assert not inventory.update(cards(0, 1, 2))
    assert inventory.update(cards(0, 1, 2, 3)) is False  # one more changes nothing
    assert inventory.amounts("n") == {"nvidia.com/gpu": "2"}


def test_a_card_that_comes_later_does_not_exceed_what_claims_have():
    inventory = CardInventory(cards(0, 1), ["n"], by_claims=1)
    inventory.update(cards(0, 1, 2))

    assert ids(inventory, "n", by_claims=True) == ["nvidia-1"]
    assert inventory.amounts("n") == {"nvidia.com/gpu": "2"}


def test_a_card_that_is_gone_counts_until_its_pod_has_ended_and_can_come_back():
    inventory = CardInventory(cards(0, 1, 2), ["n"])

    assert inventory.update(cards(0, 2))
    assert inventory.amounts("n", frozenset({"nvidia-1"})) == {"nvidia.com/gpu": "3"}
    assert inventory.amounts("n") == {"nvidia.com/gpu": "2"}
    assert inventory.update(cards(0, 1, 2))
    assert inventory.amounts("n") == {"nvidia.com/gpu": "3"}
    assert not inventory.update(cards(0, 1, 2))


def test_what_a_failing_tool_does_not_say_stays_as_it_was():
    inventory = CardInventory(cards(0, 1), ["n"])

    assert not inventory.update(FoundCards(unknown=frozenset({"nvidia"}), warnings=("broken",)))
    assert inventory.amounts("n") == {"nvidia.com/gpu": "2"}


def test_files_of_a_managed_vendor_are_owned_even_if_the_card_was_not_listed():
    inventory = CardInventory(cards(0), ["n"])

    assert inventory.owns("nvidia0") and inventory.owns("nvidia7")
    assert not inventory.owns("davinci0") and not inventory.owns("dri/renderD128")
