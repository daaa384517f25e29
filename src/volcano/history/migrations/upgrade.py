"""Runs Alembic on a database of the history, in one transaction. Imported only when there is something to migrate."""

from __future__ import annotations

import re
from pathlib import Path

from volcano.history.problems import DatabaseProblem


def upgrade(url: str, found: str) -> None:
    """Bring the database to the newest revision; a revision that this release does not know is refused."""
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory
    from alembic.util.exc import CommandError

    folder = Path(__file__).parent
    config = Config()
    config.set_main_option("script_location", str(folder).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["url"] = re.sub(r"^postgres(ql)?(\+\w+)?://", "postgresql+psycopg://", url)
    try:
        if found:
            ScriptDirectory.from_config(config).get_revision(found)
        command.upgrade(config, "head")
    except CommandError as error:
        raise DatabaseProblem(
            f"the history has schema {found!r}, which this release does not know; use the release that wrote it, or a "
            f"newer one ({error})"
        ) from error
