"""What every test run has: the profile of property tests, the choice of suites, and a report that hides nothing.

The parts are pytest plugins of their own in tests/reporting; the fixtures of the real control plane and of the history's databases are, too.
"""

pytest_plugins = (
    "tests.reporting.properties",
    "tests.reporting.suites",
    "tests.reporting.failures",
    "tests.kubernetes.fixtures",
    "tests.history_databases",
)
