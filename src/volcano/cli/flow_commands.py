"""The commands of `vcctl jobflow` and `vcctl jobtemplate`, as values."""

from __future__ import annotations

from volcano.cli.command_line import BOOL, CLOSER, CommandSpec, Flag
from volcano.cli.common_flags import CONNECTION, LISTING, ONE

SHORTS = {
    "jobflow": "Run jobs that wait for one another",
    "jobtemplate": "Keep the jobs that flows are made of",
}


def flow_group(name: str, *, everywhere: bool) -> CommandSpec:
    namespace = Flag("namespace", "n", default="default", help=f"the namespace of the {name}")
    named = Flag("name", "N", help=f"the name of the {name}; it may also be given as an argument")
    file = Flag("file", "f", help=f"the YAML file of the {name}")
    listing = (Flag("all-namespaces", kind=BOOL, default=False, help=f"list {name}s in all namespaces"),)
    form = Flag("format", "o", default="yaml", help="yaml or json")
    drawn = CommandSpec(
        "view", f"Draw a {name} with the state of its steps, live", (*CONNECTION, named, namespace),
        "volcano.cli.flow_view:view", arguments=ONE, section=CLOSER,
    )  # fmt: skip
    return CommandSpec(
        name,
        SHORTS[name],
        examples=(f"vcctl {name} create -f examples/jobflow-diamond.yaml", f"vcctl {name} list"),
        children=(
            CommandSpec("create", f"Create the {name}s of a file", (*CONNECTION, file), "volcano.cli.flows:create"),
            CommandSpec(
                "list",
                f"List {name}s",
                (*CONNECTION, namespace, *(listing if everywhere else ()), *LISTING),
                "volcano.cli.flows:list_objects",
            ),
            CommandSpec(
                "get", f"Show one {name} as a line", (*CONNECTION, named, namespace), "volcano.cli.flows:get",
                arguments=ONE,
            ),
            CommandSpec(
                "delete",
                f"Delete a {name}, or those of a file",
                (*CONNECTION, named, namespace, file),
                "volcano.cli.flows:delete",
                arguments=ONE,
            ),
            *((drawn,) if name == "jobflow" else ()),
            CommandSpec(
                "describe",
                f"Print a {name} as YAML or JSON",
                (*CONNECTION, named, namespace, form),
                "volcano.cli.flows:describe",
                arguments=ONE,
                section=CLOSER,
            ),
        ),
    )  # fmt: skip
