"""Explanations end to end: the cases that were once explained wrongly, and every kind.

`test_waiting` has the cases before pods are placed, `test_placed` those after it, `test_kinds` all kinds of objects.
"""
