"""Pytest plugins of this project: property tests and their seed, which suites run, what was skipped, what failed."""
