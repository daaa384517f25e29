"""Which cards a pod may use at all: by the annotations with which pods select types, ids and modes of cards."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from volcano.api.core import Pod
from volcano.api.device_families import DeviceFamily
from volcano.scheduler.core.cards import Card
from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.plugins.deviceshare.demands import HAMI_CORE, asks_for_soft_share


class CardFilter:
    """Over all cards of a family during a session."""

    def __init__(self, family: DeviceFamily, cards: Sequence[Card]) -> None:
        self._family, self._cards = family, cards
        names = (family.mode, family.use_id, family.avoid_id, family.use_type, family.avoid_type)
        self._names = tuple(names)
        self._masks: dict[tuple[str, ...], Mask] = {}

    def allowed(self, pod: Pod) -> Mask:
        """Not to be written to."""
        stated = tuple(pod.annotations.get(name, "") if name else "" for name in self._names)
        soft = asks_for_soft_share(self._family, pod)
        key = (*stated, "soft" if soft else "")
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = self._passing(*stated, soft=soft)
        return mask

    def _passing(self, mode: str, use_id: str, avoid_id: str, use_type: str, avoid_type: str, *, soft: bool) -> Mask:
        family, use, avoid = self._family, _listed(use_id), _listed(avoid_id)
        used, avoided = _listed(use_type), _listed(avoid_type)
        kinds = {card.type for card in self._cards}
        types = {kind: _fits_type(kind, family.type_word, used, avoided) for kind in kinds}
        return np.array(
            [
                types[card.type]
                and (card.healthy or not family.checks_health)
                and (not mode or card.mode == mode)
                and (not soft or card.mode == HAMI_CORE)
                and _fits_id(card.id, use, avoid)
                for card in self._cards
            ],
            dtype=bool,
        )


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _fits_id(id: str, use: list[str], avoid: list[str]) -> bool:
    if not use and not avoid:
        return True
    return bool(id) and id not in avoid and (not use or id in use)


def _fits_type(kind: str, word: str, use: list[str], avoid: list[str]) -> bool:
    spelt = kind.lower()
    if word not in kind or any(part.lower() in spelt for part in avoid):
        return False
    return not use or any(part.lower() in spelt for part in use)
