"""Explain: why something waits, decided by trials of the scheduler on its snapshot, and which changes let it run.

`trials` tries one job on a snapshot that is left as it was; `empty_cluster` is the same cluster without what ends by
itself; `causes_*` find the reason; `changes` proposes changes and tries each; `answers` puts an answer together.
"""
