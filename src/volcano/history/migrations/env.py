"""What Alembic runs around the revisions: one connection, one transaction."""

from __future__ import annotations

from alembic import context
from sqlalchemy import create_engine, pool


def migrate() -> None:
    engine = create_engine(context.config.attributes["url"], poolclass=pool.NullPool)
    with engine.connect() as connection:
        context.configure(connection=connection, transactional_ddl=True)
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
    engine.dispose()


migrate()
