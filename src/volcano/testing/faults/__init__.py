"""Deterministic fault simulation: the real system in one process on virtual time, with faults chosen by a seed."""
