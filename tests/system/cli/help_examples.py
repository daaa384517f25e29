"""The examples in the help of vcctl and the v* commands, and which of them need a whole system."""

from volcano.cli.programs import programs

NEEDS_A_SYSTEM = {
    "explain", "logs", "wait", "exec", "shell", "attach", "vrun", "--me", "scheduler", "eta", "--start", "--dry-run",
    "history", "usage", "vacct", "top",
}  # fmt: skip
"""Words of commands that ask components, pods or the history, which an API server alone does not have."""


def needs_a_system(example):
    words = {*example.replace("=", " ").split()}
    return bool(NEEDS_A_SYSTEM & words) or "<(" in example


def all_examples():
    """Every example once, groups and programs included."""

    def below(command):
        yield from command.examples
        for child in command.children:
            if not child.hidden:
                yield from below(child)

    return sorted({example for root in programs() for example in below(root)})
