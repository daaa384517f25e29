"""Sums of whole past days by namespace, queue and user. They are made by the next upkeep.

The statements are repeated here because a revision never changes, while volcano.history.schema is always the newest.
"""

from __future__ import annotations

from typing import Final

from alembic import op

revision: Final = "0002"
down_revision: Final = "0001"
STATEMENTS: Final = (
    """CREATE TABLE daily_sums (
        "day" BIGINT NOT NULL, "namespace" TEXT NOT NULL, "queue" TEXT NOT NULL, "user" TEXT NOT NULL,
        "pods" BIGINT NOT NULL, "began" BIGINT NOT NULL, "cpu_hours" BIGINT NOT NULL,
        "memory_gib_hours" BIGINT NOT NULL, "gpu_hours" BIGINT NOT NULL, "measured_cpu_hours" BIGINT NOT NULL,
        "used_cpu_hours" BIGINT NOT NULL, "measured_memory_gib_hours" BIGINT NOT NULL,
        "used_memory_gib_hours" BIGINT NOT NULL, "started" BIGINT NOT NULL, "waited" BIGINT NOT NULL,
        "longest" BIGINT NOT NULL, "jobs" BIGINT NOT NULL, PRIMARY KEY ("day", "namespace", "queue", "user")
    )""",
    'CREATE TABLE summed_days ("day" BIGINT PRIMARY KEY)',
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
