"""`volcano completion SHELL`, and the candidates for `volcano` itself: click's commands as what completion reads."""

from __future__ import annotations

import click

from volcano.cli.command_line import BOOL, STRING, CommandSpec, Flag
from volcano.cli.completion import candidates, program_names
from volcano.cli.completion_scripts import SHELLS, completion_script


@click.command()
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion_command(shell: str) -> None:
    """Print the completion script of volcano, vcctl and the v* commands for SHELL.

    \b
    Example:
      source <(volcano completion bash)
    """
    click.echo(completion_script(shell, program_names(), "volcano"), nl=False)


@click.command("__complete", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def complete_command(words: tuple[str, ...]) -> None:
    """The candidates for the last word, one a line; the first word is the program."""
    for candidate in candidates(_spec(list(words[1:])), list(words[1:])):
        click.echo(candidate)


def _spec(words: list[str]) -> CommandSpec:
    """`volcano` with its commands; only those that are named on the line are imported."""
    from volcano.app.main import COMMANDS, volcano_command

    context = click.Context(volcano_command, info_name="volcano")
    children = []
    for name in COMMANDS:
        command = volcano_command.get_command(context, name) if name in words else None
        children.append(_command(name, command) if command is not None else CommandSpec(name))
    return CommandSpec("volcano", children=tuple(children))


def _command(name: str, command: click.Command) -> CommandSpec:
    below = command.commands if isinstance(command, click.Group) else {}
    arguments = [each for each in command.params if isinstance(each, click.Argument)]
    chosen = ["|".join(map(str, each.type.choices)) for each in arguments if isinstance(each.type, click.Choice)]
    return CommandSpec(
        name,
        flags=tuple(_flag(each) for each in command.params if isinstance(each, click.Option) and not each.hidden),
        children=tuple(_command(each, found) for each, found in below.items()),
        arguments=chosen[0] if chosen else "",
    )


def _flag(option: click.Option) -> Flag:
    names = [each.removeprefix("--") for each in option.opts if each.startswith("--")]
    shorts = [each[1:] for each in option.opts if not each.startswith("--")]
    choices = tuple(map(str, option.type.choices)) if isinstance(option.type, click.Choice) else ()
    kind = BOOL if option.is_flag else STRING
    return Flag(names[0] if names else "", shorts[0] if shorts else "", kind=kind, choices=choices)
