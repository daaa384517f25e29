"""ColocationConfigurations: which memory rules each pod runs under."""

from volcano.controllers.colocation.controller import ColocationController

__all__ = ["ColocationController"]
