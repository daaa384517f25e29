"""`vcctl help beyond`: the commands and flags that Volcano's own vcctl does not have."""

from __future__ import annotations

from volcano.cli.command_line import Called, say

TEXT = """\
Beyond Volcano's own commands:

  vcctl job explain NAME [-n NAMESPACE] [-o json|yaml]
      Why is my job pending? The first blocking reason, the nodes left after each condition,
      the place in the queue, and whether waiting will help.
  vcctl job run -f FILE --dry-run=schedule        (also: vsub … --test-only)
      Where the job would go now, or why not, and whom it would preempt; nothing is submitted.
  vcctl queue tree
      The hierarchy of queues with deserved, guaranteed, capability, allocated and borrowed.
  vcctl jobflow view NAME
      The graph of a flow with the state of each step, live in the terminal.
  vcctl top
      Queues, jobs and nodes, live in the terminal.
  vcctl completion bash|zsh|fish
      Shell completion, with live names of jobs and queues.

On every list (job, queue, jobflow, jobtemplate, pod):

  -o, --output json|yaml|wide|name
  -w, --watch
"""


def beyond(called: Called) -> None:
    say(TEXT, end="")
