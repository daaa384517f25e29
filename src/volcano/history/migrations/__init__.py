"""Older databases of the history are brought to the newest schema by Alembic; `versions` has one file a revision."""
