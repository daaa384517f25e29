"""The tables of the history: one text for SQLite and PostgreSQL. Times are milliseconds since 1970, lists are JSON.

A new database is made by these statements; an older one is brought here by `migrations`, whose newest revision is
`REVISION`. A test compares what both ways lead to.
"""

from __future__ import annotations

from typing import Final

REVISION: Final = "0002"
VERSION_TABLE: Final = "alembic_version"

STATEMENTS: Final = (
    """CREATE TABLE jobs (
        "uid" TEXT PRIMARY KEY, "kind" TEXT NOT NULL, "namespace" TEXT NOT NULL, "name" TEXT NOT NULL,
        "queue" TEXT NOT NULL, "user" TEXT NOT NULL, "priority_class" TEXT NOT NULL, "scheduler" TEXT NOT NULL,
        "owner" TEXT NOT NULL, "labels" TEXT NOT NULL, "roles" TEXT NOT NULL, "pods" BIGINT NOT NULL,
        "min_available" BIGINT NOT NULL, "requests" TEXT NOT NULL, "cpu_milli" BIGINT NOT NULL,
        "memory_bytes" BIGINT NOT NULL, "gpu_milli" BIGINT NOT NULL, "estimate_seconds" DOUBLE PRECISION,
        "phase" TEXT NOT NULL, "reason" TEXT NOT NULL, "message" TEXT NOT NULL, "retries" BIGINT NOT NULL,
        "created" BIGINT NOT NULL, "started" BIGINT, "ended" BIGINT, "gone" BIGINT, "end_is_known" BIGINT NOT NULL
    )""",
    'CREATE INDEX jobs_by_name ON jobs ("namespace", "name")',
    'CREATE INDEX jobs_by_creation ON jobs ("created")',
    'CREATE INDEX jobs_by_end ON jobs ("ended")',
    'CREATE INDEX jobs_by_presence ON jobs ("gone")',
    """CREATE TABLE states (
        "job_uid" TEXT NOT NULL, "at" BIGINT NOT NULL, "phase" TEXT NOT NULL, "reason" TEXT NOT NULL,
        "message" TEXT NOT NULL, PRIMARY KEY ("job_uid", "at", "phase", "reason")
    )""",
    """CREATE TABLE pods (
        "uid" TEXT PRIMARY KEY, "job_uid" TEXT NOT NULL, "group_name" TEXT NOT NULL, "namespace" TEXT NOT NULL,
        "name" TEXT NOT NULL, "role" TEXT NOT NULL, "index" BIGINT NOT NULL, "attempt" BIGINT NOT NULL,
        "node" TEXT NOT NULL, "phase" TEXT NOT NULL, "reason" TEXT NOT NULL, "message" TEXT NOT NULL,
        "exit_code" BIGINT, "restarts" BIGINT NOT NULL, "requests" TEXT NOT NULL, "cpu_milli" BIGINT NOT NULL,
        "memory_bytes" BIGINT NOT NULL, "gpu_milli" BIGINT NOT NULL, "created" BIGINT NOT NULL, "bound" BIGINT,
        "started" BIGINT, "ended" BIGINT, "gone" BIGINT
    )""",
    'CREATE INDEX pods_by_job ON pods ("job_uid")',
    'CREATE INDEX pods_by_group ON pods ("namespace", "group_name")',
    'CREATE INDEX pods_by_time ON pods ("ended", "bound")',
    'CREATE INDEX pods_by_presence ON pods ("gone")',
    """CREATE TABLE measured (
        "pod_uid" TEXT PRIMARY KEY, "milliseconds" BIGINT NOT NULL, "cpu_milli_seconds" BIGINT NOT NULL,
        "memory_mib_seconds" BIGINT NOT NULL
    )""",
    """CREATE TABLE evictions (
        "pod_uid" TEXT PRIMARY KEY, "job_uid" TEXT NOT NULL, "at" BIGINT NOT NULL, "namespace" TEXT NOT NULL,
        "pod" TEXT NOT NULL, "node" TEXT NOT NULL, "by" TEXT NOT NULL, "reason" TEXT NOT NULL,
        "message" TEXT NOT NULL, "preemptor" TEXT NOT NULL
    )""",
    'CREATE INDEX evictions_by_job ON evictions ("job_uid")',
    'CREATE INDEX evictions_by_time ON evictions ("at")',
    """CREATE TABLE queue_samples (
        "at" BIGINT NOT NULL, "queue" TEXT NOT NULL, "parent" TEXT NOT NULL, "state" TEXT NOT NULL,
        "weight" BIGINT NOT NULL, "allocated" TEXT NOT NULL, "deserved" TEXT NOT NULL, "guarantee" TEXT NOT NULL,
        "capability" TEXT NOT NULL, "pending" BIGINT NOT NULL, "inqueue" BIGINT NOT NULL, "running" BIGINT NOT NULL,
        "gone" BIGINT NOT NULL, PRIMARY KEY ("queue", "at")
    )""",
    """CREATE TABLE node_samples (
        "at" BIGINT NOT NULL, "node" TEXT NOT NULL, "allocatable" TEXT NOT NULL, "requested" TEXT NOT NULL,
        "pods" BIGINT NOT NULL, "ready" BIGINT NOT NULL, "schedulable" BIGINT NOT NULL, "gone" BIGINT NOT NULL,
        PRIMARY KEY ("node", "at")
    )""",
    """CREATE TABLE gaps (
        "kind" TEXT NOT NULL, "begin" BIGINT NOT NULL, "end" BIGINT NOT NULL, "why" TEXT NOT NULL,
        PRIMARY KEY ("kind", "begin")
    )""",
    """CREATE TABLE positions (
        "kind" TEXT PRIMARY KEY, "cluster" TEXT NOT NULL, "revision" TEXT NOT NULL, "at" BIGINT NOT NULL
    )""",
    """CREATE TABLE daily_sums (
        "day" BIGINT NOT NULL, "namespace" TEXT NOT NULL, "queue" TEXT NOT NULL, "user" TEXT NOT NULL,
        "pods" BIGINT NOT NULL, "began" BIGINT NOT NULL, "cpu_hours" BIGINT NOT NULL,
        "memory_gib_hours" BIGINT NOT NULL, "gpu_hours" BIGINT NOT NULL, "measured_cpu_hours" BIGINT NOT NULL,
        "used_cpu_hours" BIGINT NOT NULL, "measured_memory_gib_hours" BIGINT NOT NULL,
        "used_memory_gib_hours" BIGINT NOT NULL, "started" BIGINT NOT NULL, "waited" BIGINT NOT NULL,
        "longest" BIGINT NOT NULL, "jobs" BIGINT NOT NULL, PRIMARY KEY ("day", "namespace", "queue", "user")
    )""",
    'CREATE TABLE summed_days ("day" BIGINT PRIMARY KEY)',
    f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL PRIMARY KEY)",
)
TABLES: Final = (
    "jobs",
    "states",
    "pods",
    "measured",
    "evictions",
    "queue_samples",
    "node_samples",
    "gaps",
    "positions",
    "daily_sums",
    "summed_days",
)
