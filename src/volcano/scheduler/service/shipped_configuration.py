"""The volcano-scheduler.conf that an installation starts with, embedded or on a cluster."""

from __future__ import annotations

from typing import Final

DEFAULT_CONFIGURATION: Final = """\
actions: "enqueue, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: overcommit
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""
"""What the ConfigMap volcano-scheduler-configmap holds at first: the built-in configuration, spelt out to be edited."""
