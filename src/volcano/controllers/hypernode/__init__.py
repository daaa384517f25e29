"""HyperNodes: how many members each has, and those that are made from labels of nodes."""

from volcano.controllers.hypernode.controller import HyperNodeController

__all__ = ["HyperNodeController"]
