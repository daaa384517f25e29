"""Queues: open, closing, closed; what a parent does to its children; how many PodGroups are in which phase."""

from volcano.controllers.queue.controller import QueueController

__all__ = ["QueueController"]
