"""vcctl and the v* commands: a file per noun, byte-compatible output, and what goes beyond."""
