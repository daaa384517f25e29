"""Which lines of a script are options."""

from __future__ import annotations

import pytest

from volcano.cli.slurm.directives import ScriptRefused, check_script, directives


def words(script: str) -> list[tuple[str, ...]]:
    return [each.words for each in directives(script)]


def test_options_end_at_the_first_command() -> None:
    assert words("#!/bin/sh\n\n# text\n#SBATCH -n 4\n\nset -e\n#SBATCH -n 5\n") == [("-n", "4")]


def test_comments_and_switched_off_options_are_no_options() -> None:
    assert words("#!/bin/sh\n##SBATCH -n 1\n# SBATCH -n 2\n#SBATCHX -n 3\n #SBATCH -n 4\n#sbatch -n 5\n") == []


def test_words_are_split_as_a_shell_does_and_a_comment_may_follow() -> None:
    script = "#!/bin/sh\n#SBATCH --job-name=\"a b\" -o 'x y'   # don't\n#VSUB --comment=a#b\n"
    assert words(script) == [("--job-name=a b", "-o", "x y"), ("--comment=a#b",)]


def test_the_line_is_told() -> None:
    assert [(each.line, each.text) for each in directives("#!/bin/sh\n\n#SBATCH -n 4  \n")] == [(3, "#SBATCH -n 4")]
    with pytest.raises(ScriptRefused, match=r"line 2: .*no closing quotation"):
        directives('#!/bin/sh\n#SBATCH --job-name="a\n')


@pytest.mark.parametrize(
    ("script", "why"),
    [(b"echo hello\n", "must start with #!"), (b"", "is empty"), (b"\x7fELF\0", "binary"), (b"#!/bin/sh\r\n", "DOS"),
     (b"#!/bin/sh\n" + b"#" * 200_000, "at most")],
)  # fmt: skip
def test_what_is_no_batch_script(script: bytes, why: str) -> None:
    with pytest.raises(ScriptRefused, match=why):
        check_script(script, "file.sh")
