"""sbatch's options on lines of scripts and on the command line."""

from __future__ import annotations

import pytest

from volcano.cli.slurm.directives import directives
from volcano.cli.slurm.options import OptionRefused, of_command_line, of_script, settled


def given(*words: str) -> dict[str, str]:
    return {each.name: each.value for each in of_command_line(words)[0]}


@pytest.mark.parametrize(
    "words", [("-n", "4"), ("-n4",), ("-n=4",), ("--ntasks=4",), ("--ntasks", "4"), ("--ntask=4",)]
)
def test_the_spellings_of_one_option(words: tuple[str, ...]) -> None:
    if words[0] == "--ntask=4":  # the beginning of several options
        with pytest.raises(OptionRefused, match="--ntask is not known"):
            given(*words)
    else:
        assert given(*words) == {"ntasks": "4"}


def test_the_beginning_of_a_name_is_enough_where_only_one_option_has_it() -> None:
    assert given("--part=a") == {"partition": "a"}


def test_the_script_and_its_arguments_follow_the_options() -> None:
    options, rest = of_command_line(["-J", "x", "--parsable", "run.sh", "-n", "9"])

    assert [each.name for each in options] == ["job-name", "parsable"]
    assert rest == ["run.sh", "-n", "9"]


def test_the_last_of_an_option_counts_and_ignored_ones_get_a_word() -> None:
    lines = of_script(directives("#!/bin/sh\n#SBATCH -n 1 --mail-type=ALL\n"))
    chosen, notes = settled([*lines, *of_command_line(["-n", "2"])[0]])

    assert chosen["ntasks"].value == "2"
    assert notes == ["line 2: #SBATCH -n 1 --mail-type=ALL: --mail-type is ignored: no mail is sent; "
                     "`vcctl job wait` waits for an end"]  # fmt: skip


def test_every_option_that_is_not_supported_is_told_with_its_line() -> None:
    script = "#!/bin/sh\n#SBATCH --exclusive\n#SBATCH -L x\n"

    with pytest.raises(OptionRefused) as refused:
        settled(of_script(directives(script)))

    first, second = str(refused.value).splitlines()
    assert first.startswith("line 2: #SBATCH --exclusive: --exclusive is not supported: ")
    assert second.startswith("line 3: #SBATCH -L x: --licenses is not supported: ")


@pytest.mark.parametrize(
    ("line", "why"),
    [("--cpu-per-task=4", "did you mean"), ("--ntasks", "needs a value"), ("--requeue=yes", "takes no value"),
     ("-Z", "-Z is not known"), ("word", "'word' is no option")],
)  # fmt: skip
def test_what_cannot_be_understood(line: str, why: str) -> None:
    with pytest.raises(OptionRefused, match=f"line 2: .*{why}"):
        of_script(directives(f"#!/bin/sh\n#SBATCH {line}\n"))


def test_all_lines_that_cannot_be_read_are_told_and_the_queue_has_two_names() -> None:
    script = "#!/bin/sh\n#SBATCH --nope\n#SBATCH hetjob\n#SBATCH word\n"

    with pytest.raises(OptionRefused) as refused:
        of_script(directives(script))

    first, second, third = str(refused.value).splitlines()
    assert first.startswith("line 2: ") and "--nope is not known" in first
    assert second.startswith("line 3: ") and "several kinds of nodes" in second
    assert third == "line 4: #SBATCH word: 'word' is no option"
    assert of_command_line(["--queue", "a"])[0][0].name == of_command_line(["-p", "a"])[0][0].name == "partition"
