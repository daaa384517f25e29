"""The composition root: settings, wiring, and the `volcano` command."""
