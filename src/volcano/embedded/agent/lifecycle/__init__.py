"""The pod state machine and the status it reports: events, commands, records, restart policy. Pure, no I/O.

What carries the commands out is in `runtime`; what writes the status is `agent.status_writer`.
"""
