"""NOUNS and FACTS: what objects look like, and what every part must agree on. Nothing here does I/O.

Kinds by API group: core (Kubernetes' own), batch, scheduling, flow, topology, bus; kubelet: a pod for the agent.
What is known of a kind beyond its fields: pods/, jobs/, cron/, quotas, hypernode_members, dag, indexes.
Every kind: meta, partial, scheme, schemas/, schema_annotations, decode, manifests, errors, field_errors, fields.
Values as text: names, selectors, patterns, quantity, durations, times, ages, go_text; copies.
"""
