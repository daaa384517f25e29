"""The database of the history: SQLite beside the store, or PostgreSQL. One connection, one statement at a time.

SQL is written once, with `:name` for values and quoted column names. The calls block; callers leave the event loop
with `Clock.run`. Alembic and SQLAlchemy are imported only when an older schema has to be migrated (decision 100).
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import unquote

from volcano.history.problems import DatabaseProblem, DatabaseUnavailable
from volcano.history.schema import REVISION, STATEMENTS, TABLES, VERSION_TABLE

Values: TypeAlias = Mapping[str, Any]
Row: TypeAlias = Sequence[Any]

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql"
MEMORY: Final = "sqlite://"
PRIVATE_FILE_MODE: Final = 0o600
CACHE_KIB: Final = 4096
PREPARING_LOCK: Final = 7_305_813_220
"""The number of the advisory lock under which the schema is made or migrated; any that others do not use."""
_VALUE: Final = re.compile(r"(?<!:):([a-z_][a-z_0-9]*)")


class _Connection(Protocol):
    def cursor(self) -> Any: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def close(self) -> None: ...


class Database:
    """Opened lazily, and opened again after an error of the connection."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.dialect = _dialect(url)
        self._lock = threading.RLock()
        self._connection: _Connection | None = None

    # -- life -----------------------------------------------------------------------------------------------------
    def prepare(self) -> None:
        """Make the schema in an empty database, or bring an older one up to date; refuse a newer one.

        Several processes may do so at the same time: one does it, the others find it done.
        """
        with self._lock, self._alone():
            found = self._stored_revision()
            if found is None:
                self._make_schema()
            elif found != REVISION:
                if self.dialect == SQLITE:
                    self.close()
                from volcano.history.migrations.upgrade import upgrade  # imports Alembic: 40 MiB

                upgrade(self.url, found)

    def _make_schema(self) -> None:
        with self.transaction():
            if self._stored_revision() is not None:
                return  # another process has made it since
            for statement in STATEMENTS:
                self.execute(statement)
            self.execute(f"INSERT INTO {VERSION_TABLE} VALUES (:revision)", {"revision": REVISION})

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """PostgreSQL: no other process prepares the database meanwhile. SQLite has a lock in each transaction."""
        if self.dialect == SQLITE:
            yield
            return
        self.query("SELECT pg_advisory_lock(:key)", {"key": PREPARING_LOCK})
        try:
            yield
        finally:
            with contextlib.suppress(DatabaseProblem):
                self.query("SELECT pg_advisory_unlock(:key)", {"key": PREPARING_LOCK})

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                with contextlib.suppress(Exception):
                    self._connection.close()
            self._connection = None

    def _stored_revision(self) -> str | None:
        """None in an empty database."""
        if self.dialect == SQLITE:
            there = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name"
        else:
            there = "SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = :name"
        if not self.query(there, {"name": VERSION_TABLE}):
            return None
        found = self.query(f"SELECT version_num FROM {VERSION_TABLE}")
        return str(found[0][0]) if found else ""

    # -- statements -----------------------------------------------------------------------------------------------
    def query(self, statement: str, values: Values | None = None) -> list[Row]:
        with self._lock:
            try:
                cursor = self._opened().cursor()
                cursor.execute(translated(statement, self.dialect), values or {})
                rows: list[Row] = cursor.fetchall()
                self._end_reading()
            except Exception as error:
                raise self._failed(error) from error
            return rows

    def execute(self, statement: str, values: Values | None = None) -> int:
        """Inside a transaction; how many rows were changed."""
        with self._lock:
            try:
                cursor = self._opened().cursor()
                cursor.execute(translated(statement, self.dialect), values or {})
                return int(cursor.rowcount)
            except Exception as error:
                raise self._failed(error) from error

    def execute_many(self, statement: str, many: Sequence[Values]) -> None:
        if not many:
            return
        with self._lock:
            try:
                self._opened().cursor().executemany(translated(statement, self.dialect), list(many))
            except Exception as error:
                raise self._failed(error) from error

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All of the block or nothing; durable at its end."""
        with self._lock:
            connection = self._opened()
            self._in_transaction = True
            try:
                if self.dialect == SQLITE:
                    connection.cursor().execute("BEGIN IMMEDIATE")
                yield
                connection.commit()
            except BaseException as error:
                with contextlib.suppress(Exception):
                    connection.rollback()
                if isinstance(error, DatabaseProblem) or not isinstance(error, Exception):
                    raise
                raise self._failed(error) from error
            finally:
                self._in_transaction = False

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """Questions inside the block see one state of the database."""
        with self._lock:
            if self.dialect == SQLITE:  # this process is the only writer, and waits for the lock
                yield
                return
            self._in_transaction = True
            try:
                self.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
                yield
            finally:
                self._in_transaction = False
                self._end_reading()

    _in_transaction = False

    def _end_reading(self) -> None:
        """PostgreSQL begins a transaction with the first statement; one that only reads ends at once."""
        if self.dialect == POSTGRESQL and not self._in_transaction and self._connection is not None:
            self._connection.rollback()

    # -- size -----------------------------------------------------------------------------------------------------
    def size_bytes(self) -> int:
        if self.dialect == SQLITE:
            pages, free, size = (
                int(self.query(f"PRAGMA {name}")[0][0]) for name in ("page_count", "freelist_count", "page_size")
            )
            return (pages - free) * size
        sizes = " + ".join(f"pg_total_relation_size('{table}')" for table in TABLES)
        return int(self.query(f"SELECT {sizes}")[0][0])

    def give_back_space(self) -> None:
        """Return the room of deleted rows to the file system, or at least to later rows."""
        with self._lock:
            try:
                connection = self._opened()
                if self.dialect == SQLITE:
                    connection.cursor().execute("PRAGMA incremental_vacuum").fetchall()
                    connection.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                    return
                connection.rollback()
                driver: Any = connection
                driver.autocommit = True
                try:
                    for table in TABLES:
                        connection.cursor().execute(f"VACUUM {table}")
                finally:
                    driver.autocommit = False
            except Exception as error:
                raise self._failed(error) from error

    # -- connections ----------------------------------------------------------------------------------------------
    def _opened(self) -> _Connection:
        if self._connection is None:
            self._connection = _open_sqlite(self.url) if self.dialect == SQLITE else _open_postgresql(self.url)
        return self._connection

    def _failed(self, error: Exception) -> DatabaseProblem:
        if isinstance(error, DatabaseProblem):
            return error
        if self.dialect == POSTGRESQL:
            connection: Any = self._connection
            if connection is not None and (connection.closed or connection.broken):
                self.close()
                return DatabaseUnavailable(f"PostgreSQL does not answer: {_first_line(error)}")
            with contextlib.suppress(Exception):
                if connection is not None and not self._in_transaction:
                    connection.rollback()
            return DatabaseProblem(f"PostgreSQL: {_first_line(error)}")
        if isinstance(error, sqlite3.OperationalError):
            return DatabaseUnavailable(f"{self.url}: {_first_line(error)}")
        return DatabaseProblem(f"{self.url}: {_first_line(error)}")


def _dialect(url: str) -> str:
    scheme = url.partition(":")[0].partition("+")[0]
    if scheme == "sqlite":
        return SQLITE
    if scheme in ("postgresql", "postgres"):
        return POSTGRESQL
    raise DatabaseProblem(f"--database must be sqlite:///FILE or postgresql://…, not {url.partition('@')[0][:64]!r}")


def sqlite_path(url: str) -> Path | None:
    """The file of `sqlite:///relative` or `sqlite:////absolute`; None for the database in memory."""
    rest = url.partition("://")[2]
    return Path(unquote(rest[1:])) if len(rest) > 1 else None


@lru_cache(maxsize=512)
def translated(statement: str, dialect: str) -> str:
    """`:name` as the driver writes it."""
    if dialect == SQLITE:
        return statement
    return _VALUE.sub(r"%(\1)s", statement.replace("%", "%%"))


def _open_sqlite(url: str) -> _Connection:
    path = sqlite_path(url)
    try:
        if path is not None:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE_MODE))
            path.chmod(PRIVATE_FILE_MODE)
        connection = sqlite3.connect(str(path or ":memory:"), check_same_thread=False, isolation_level=None)
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    except (OSError, sqlite3.Error) as error:
        raise DatabaseProblem(f"the history cannot be kept in {path}: {error}") from error
    return connection


def _open_postgresql(url: str) -> _Connection:
    try:
        import psycopg
    except ImportError as error:
        raise DatabaseProblem("PostgreSQL needs the package psycopg: pip install 'volcano[postgresql]'") from error
    try:
        connection: _Connection = psycopg.connect(re.sub(r"^postgres(ql)?(\+\w+)?://", "postgresql://", url))
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(f"PostgreSQL does not answer: {_first_line(error)}") from error
    return connection


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
