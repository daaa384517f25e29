"""Finished Jobs that are deleted some time after they finished."""

from volcano.controllers.garbage.controller import GarbageController

__all__ = ["GarbageController"]
