"""sbatch's options: which are understood, which are ignored with a word, which are refused with their line. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from volcano.api.nearest_words import did_you_mean
from volcano.cli.slurm.directives import Directive

NO_VALUE, VALUE, OPTIONAL = "no value", "value", "optional value"


class Option(NamedTuple):
    """One option. `ignored` and `refused` say why where it is."""

    name: str
    short: str = ""
    takes: str = VALUE
    ignored: str = ""
    refused: str = ""


ALIASES: Final = {"queue": "partition"}
"""Volcano's names of what Slurm calls otherwise."""
HETEROGENEOUS: Final = ("hetjob", "packjob", ":")


class GivenOption(NamedTuple):
    """An option with its value, and where it was given: a line of the script, or 0 for the command line."""

    name: str
    value: str
    line: int = 0
    text: str = ""

    @property
    def place(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


class OptionRefused(ValueError):
    """An option that is not known or not supported; the message begins with its line."""


MAIL: Final = "no mail is sent; `vcctl job wait` waits for an end"
ACCOUNTING: Final = "there is no accounting; the queue (--partition) decides what a job may have"
LAYOUT: Final = "the scheduler's plugins decide where pods run"
WHOLE_NODES: Final = "a node cannot be reserved for one job; ask for all its CPUs, or use a queue with nodes of its own"

OPTIONS: Final = (
    # understood
    Option("array", "a"), Option("chdir", "D"), Option("comment"), Option("constraint", "C"),
    Option("container-image"), Option("cpus-per-gpu"), Option("cpus-per-task", "c"), Option("dependency", "d"),
    Option("error", "e"), Option("exclude", "x"), Option("export"), Option("gpus", "G"), Option("gpus-per-node"),
    Option("gpus-per-task"), Option("gres"), Option("image"), Option("input", "i"), Option("job-name", "J"),
    Option("mem"), Option("mem-per-cpu"), Option("mem-per-gpu"), Option("namespace"),
    Option("no-requeue", takes=NO_VALUE), Option("nodelist", "w"), Option("nodes", "N"), Option("ntasks", "n"),
    Option("ntasks-per-node"), Option("open-mode"), Option("output", "o"), Option("parsable", takes=NO_VALUE),
    Option("partition", "p"), Option("quiet", "Q", NO_VALUE), Option("requeue", takes=NO_VALUE),
    Option("tasks-per-node"), Option("test-only", takes=NO_VALUE), Option("time", "t"),
    Option("verbose", "v", NO_VALUE),
    Option("wait", "W", NO_VALUE), Option("wrap"), Option("kubeconfig"), Option("master"), Option("account", "A"),
    # of srun
    Option("pty", takes=NO_VALUE), Option("label", "l", NO_VALUE),
    # ignored with a word
    Option("mail-type", ignored=MAIL), Option("mail-user", ignored=MAIL),
    Option("qos", "q", ignored=ACCOUNTING), Option("wckey", ignored=ACCOUNTING),
    Option("kill-on-invalid-dep", ignored="a job whose dependency cannot be met waits, and says so"),
    Option("priority", ignored="use a PriorityClass, or a queue of higher priority"),
    Option("nice", takes=OPTIONAL, ignored="use a PriorityClass, or a queue of higher priority"),
    Option("distribution", "m", ignored=LAYOUT), Option("cpu-bind", ignored=LAYOUT), Option("mem-bind", ignored=LAYOUT),
    Option("hint", ignored=LAYOUT), Option("gpu-bind", ignored=LAYOUT), Option("threads-per-core", ignored=LAYOUT),
    Option("cores-per-socket", ignored=LAYOUT), Option("sockets-per-node", ignored=LAYOUT),
    Option("ntasks-per-core", ignored=LAYOUT), Option("ntasks-per-socket", ignored=LAYOUT),
    Option("extra-node-info", "B", ignored=LAYOUT), Option("contiguous", takes=NO_VALUE, ignored=LAYOUT),
    Option("switches", ignored=LAYOUT), Option("spread-job", takes=NO_VALUE, ignored=LAYOUT),
    Option("oversubscribe", "s", NO_VALUE, ignored="pods share nodes unless they fill them"),
    Option("overcommit", "O", NO_VALUE, ignored="the requests of pods are kept"),
    Option("share", takes=NO_VALUE, ignored="pods share nodes unless they fill them"),
    Option("get-user-env", takes=OPTIONAL, ignored="the environment of the submission is used"),
    Option("propagate", takes=OPTIONAL, ignored="pods have the limits of their node"),
    Option("profile", ignored="use the metrics of the cluster"), Option("acctg-freq", ignored=ACCOUNTING),
    Option("time-min", ignored="the whole time limit is kept"), Option("tmp", ignored="a pod's disk is its node's"),
    Option("deadline", ignored="the job is not removed when it cannot end in time"),
    Option("delay-boot", ignored="nodes are not booted for jobs"), Option("power", ignored="power is not managed"),
    Option("cpu-freq", ignored="frequencies are not managed"),
    Option("ignore-pbs", takes=NO_VALUE, ignored="as always"),
    Option("no-kill", "k", OPTIONAL, ignored="a lost node restarts the job, unless --no-requeue is given"),
    Option("export-file", refused="name the variables with --export"),
    # refused: leaving them out would change what the job does
    Option("exclusive", takes=OPTIONAL, refused=WHOLE_NODES),
    Option("begin", "b", refused="a start time cannot be set"),
    Option("hold", "H", NO_VALUE, refused="submit it, then `vsuspend NAME`"),
    Option("licenses", "L", refused="licences are not counted"),
    Option("reservation", refused="reservations are not chosen by the job"),
    Option("signal", refused="no signal is sent before the time limit; at the end every process gets SIGTERM"),
    Option("clusters", "M", refused="there is one cluster for each kubeconfig"),
    Option("cluster", refused="there is one cluster for each kubeconfig"),
    Option("bb", refused="there are no burst buffers"), Option("bbf", refused="there are no burst buffers"),
    Option("core-spec", "S", refused="cores are not set apart"),
    Option("thread-spec", refused="threads are not set apart"),
    Option("mcs-label", refused="use a namespace"), Option("uid", refused="pods run as their image says"),
    Option("gid", refused="pods run as their image says"), Option("container", refused="use --image"),
    Option("mincpus", refused="use --cpus-per-task"), Option("use-min-nodes", takes=NO_VALUE, ignored=LAYOUT),
    Option("reboot", takes=NO_VALUE, refused="nodes are not booted for jobs"), Option("network", refused=LAYOUT),
    Option("ntasks-per-gpu", refused="use --ntasks and --gpus"), Option("prefer", ignored=LAYOUT),
    Option("gpus-per-socket", refused="use --gpus-per-node"), Option("gpu-freq", ignored="frequencies are not managed"),
    Option("tres-per-task", refused="use --gpus-per-task and --cpus-per-task"), Option("tres-bind", ignored=LAYOUT),
)  # fmt: skip
BY_NAME: Final = {option.name: option for option in OPTIONS}
BY_SHORT: Final = {option.short: option for option in OPTIONS if option.short}
CONNECTION_SHORTS: Final = {"k": BY_NAME["kubeconfig"], "s": BY_NAME["master"]}
"""On the command line -k and -s name the API server, as for all of Volcano's commands."""


def of_script(lines: Iterable[Directive]) -> list[GivenOption]:
    """The options of all lines; OptionRefused with every line that cannot be read."""
    given, refused = read_lines(lines)
    if refused:
        raise OptionRefused("\n".join(refused))
    return given


def read_lines(lines: Iterable[Directive]) -> tuple[list[GivenOption], list[str]]:
    """The options of all lines that can be read, and what is wrong with the others."""
    given: list[GivenOption] = []
    refused: list[str] = []
    for each in lines:
        place = f"line {each.line}: {each.text}"
        try:
            options, rest = parse(each.words, BY_SHORT, place)
        except OptionRefused as error:
            refused.append(str(error))
            continue
        if rest and rest[0] in HETEROGENEOUS:
            refused.append(f"{place}: a job of several kinds of nodes is not supported; write a Job of several tasks")
        elif rest:
            refused.append(f"{place}: {rest[0]!r} is no option")
        given += [option._replace(line=each.line, text=each.text) for option in options]
    return given, refused


def of_command_line(words: Sequence[str]) -> tuple[list[GivenOption], list[str]]:
    """The options, and what follows them: the script or the command, with its arguments."""
    return parse(words, {**BY_SHORT, **CONNECTION_SHORTS}, "")


def parse(words: Sequence[str], shorts: Mapping[str, Option], place: str) -> tuple[list[GivenOption], list[str]]:
    given: list[GivenOption] = []
    waiting = list(words)
    while waiting and waiting[0].startswith("-") and waiting[0] != "-":
        word = waiting.pop(0)
        if word == "--":
            break
        given += _long(word, waiting, place) if word.startswith("--") else _short(word, waiting, shorts, place)
    return given, waiting


def _long(word: str, waiting: list[str], place: str) -> list[GivenOption]:
    name, equals, value = word[2:].partition("=")
    option = BY_NAME.get(ALIASES.get(name, name)) or _abbreviated(name)
    if option is None:
        raise OptionRefused(f"{place or word}: --{name} is not known{did_you_mean(name, (*BY_NAME, *ALIASES))}")
    if option.takes == VALUE and not equals:
        value = _taken(option, waiting, place or word)
    elif option.takes == NO_VALUE and equals:
        raise OptionRefused(f"{place or word}: --{name} takes no value")
    return [GivenOption(option.name, value, text=f"--{option.name}{f'={value}' if value else ''}")]


def _abbreviated(name: str) -> Option | None:
    """GNU's getopt takes the beginning of a name that only one option has."""
    found = [option for option in OPTIONS if option.name.startswith(name)]
    return found[0] if len(found) == 1 and len(name) > 2 else None


def _short(word: str, waiting: list[str], shorts: Mapping[str, Option], place: str) -> list[GivenOption]:
    """`-n4`, `-n 4`, `-n=4` as Slurm's users also write it, and letters without values in a row."""
    given, letters = [], word[1:]
    while letters:
        letter, letters = letters[0], letters[1:]
        option = shorts.get(letter)
        if option is None:
            raise OptionRefused(f"{place or word}: -{letter} is not known")
        value = ""
        if option.takes == VALUE:
            value = letters.removeprefix("=") if letters else _taken(option, waiting, place or word)
            letters = ""
        elif option.takes == OPTIONAL:
            value, letters = letters, ""
        given.append(GivenOption(option.name, value, text=f"-{letter}{f' {value}' if value else ''}"))
    return given


def _taken(option: Option, waiting: list[str], place: str) -> str:
    if not waiting:
        raise OptionRefused(f"{place}: --{option.name} needs a value")
    return waiting.pop(0)


def settled(given: Iterable[GivenOption]) -> tuple[dict[str, GivenOption], list[str]]:
    """The last of each option, and a word for each ignored one; OptionRefused with all that are not supported."""
    chosen, words, refused = sorted_out(given)
    if refused:
        raise OptionRefused("\n".join(refused))
    return chosen, words


def sorted_out(given: Iterable[GivenOption]) -> tuple[dict[str, GivenOption], list[str], list[str]]:
    """The last of each option, a word for each ignored one, and one for each that is not supported."""
    chosen: dict[str, GivenOption] = {}
    words, refused = [], []
    for each in given:
        option = BY_NAME[each.name]
        if option.refused:
            refused.append(f"{each.place}: --{each.name} is not supported: {option.refused}")
        elif option.ignored:
            words.append(f"{each.place}: --{each.name} is ignored: {option.ignored}")
        else:
            chosen[each.name] = each
    return chosen, list(dict.fromkeys(words)), refused
