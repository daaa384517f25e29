"""How a command says that it could not do what it was asked to."""

from __future__ import annotations


class Failed(Exception):
    """Ends the command with `Failed to <command>: <message>` on stdout and exit code 255."""
