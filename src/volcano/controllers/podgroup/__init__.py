"""PodGroups for pods that no Volcano Job made: bare ones and those of ReplicaSets, StatefulSets and other owners."""

from volcano.controllers.podgroup.controller import PodGroupController

__all__ = ["PodGroupController"]
