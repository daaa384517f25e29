"""NOUNS: what objects look like. Imports nothing else of this project and does no I/O."""
