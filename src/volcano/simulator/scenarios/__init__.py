"""Scenario files: cluster, queues, workload, policies and expectations in one YAML file."""
