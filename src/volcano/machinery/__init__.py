"""VERBS: how any component reads, waits and writes."""
