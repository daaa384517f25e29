"""Real frameworks on `volcano up`: `make test-frameworks` runs the lines of each page in docs/frameworks.

A framework is a module in `suite` with a `FRAMEWORK` (see framework.py), a page docs/frameworks/NAME.md whose marked
blocks are what the test runs (see tests/documentation/blocks.py), and what the page submits, in examples/frameworks.
"""
