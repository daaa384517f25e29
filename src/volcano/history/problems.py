"""What can be wrong with the database of the history."""

from __future__ import annotations


class DatabaseProblem(Exception):
    """The database cannot be used; the message says why and, where that is known, what helps."""


class DatabaseUnavailable(DatabaseProblem):
    """It does not answer now; the same call may succeed later."""
