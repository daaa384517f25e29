"""Fuzzing that learns: every parser that a client reaches, with inputs that are kept because they reached new code."""
