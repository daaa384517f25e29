"""A new database and a migrated one are the same, in SQLite and in PostgreSQL."""

from __future__ import annotations

import threading

import pytest

from volcano.history.database import SQLITE, Database
from volcano.history.migrations.upgrade import upgrade
from volcano.history.problems import DatabaseProblem
from volcano.history.schema import REVISION, TABLES, VERSION_TABLE


def shape(database: Database) -> object:
    if database.dialect == SQLITE:
        rows = database.query("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        return [(name, " ".join(sql.split())) for name, sql in rows if name != VERSION_TABLE]
    columns = database.query(
        "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_schema = 'public' AND table_name <> :version ORDER BY table_name, ordinal_position",
        {"version": VERSION_TABLE},
    )
    indexes = database.query(
        "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'public' ORDER BY indexname"
    )
    return [tuple(row) for row in columns], [tuple(row) for row in indexes if VERSION_TABLE not in row[0]]


def test_migrations_lead_to_the_schema_of_a_new_database(database: Database, database_url: str):
    made = shape(database)
    with database.transaction():
        for table in (*TABLES, VERSION_TABLE):
            database.execute(f"DROP TABLE {table}")
    database.close()

    upgrade(database_url, "")

    assert shape(database) == made
    assert [tuple(row) for row in database.query(f"SELECT version_num FROM {VERSION_TABLE}")] == [(REVISION,)]


def test_a_newer_database_is_refused_and_left_alone(database: Database, database_url: str):
    with database.transaction():
        database.execute(f"UPDATE {VERSION_TABLE} SET version_num = '9999'")

    with pytest.raises(DatabaseProblem, match="'9999', which this release does not know"):
        Database(database_url).prepare()

    assert [row[0] for row in database.query(f"SELECT version_num FROM {VERSION_TABLE}")] == ["9999"]


def test_processes_that_start_together_make_one_schema(database: Database, database_url: str):
    with database.transaction():
        for table in (*TABLES, VERSION_TABLE):
            database.execute(f"DROP TABLE {table}")
    together, failures = threading.Barrier(4), []

    def prepare() -> None:
        mine = Database(database_url)
        together.wait()
        try:
            mine.prepare()
        except DatabaseProblem as problem:
            failures.append(problem)
        finally:
            mine.close()

    threads = [threading.Thread(target=prepare) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failures == []
    assert [tuple(row) for row in database.query(f"SELECT version_num FROM {VERSION_TABLE}")] == [(REVISION,)]


def test_an_older_database_is_migrated_with_what_is_in_it(database: Database, database_url: str):
    """As a release before the first revision left it: the tables are made by migrations, and the rest is used at once."""
    with database.transaction():
        for table in (*TABLES, VERSION_TABLE):
            database.execute(f"DROP TABLE {table}")
        database.execute(f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)")
    database.close()

    database.prepare()

    assert [tuple(row) for row in database.query(f"SELECT version_num FROM {VERSION_TABLE}")] == [(REVISION,)]
    assert database.query("SELECT COUNT(*) FROM jobs")[0][0] == 0
