"""What `volcano up` refuses before it starts anything, and how it says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from volcano.app.up_command import up_command


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--data-dir", "{file}"], "nothing can be kept in {file}: File exists; choose another --data-dir"),
        (["--data-dir", "{file}/below"], "nothing can be kept in {file}/below: Not a directory"),
        (["--data-dir", "{folder}", "--scheduler-conf", "{folder}/nope"], "there is no file {folder}/nope"),
    ],
)
def test_what_cannot_work_is_told_in_a_line(tmp_path: Path, options: list[str], message: str):
    file, folder = tmp_path / "file", tmp_path / "folder"
    file.write_text("")
    given = [option.format(file=file, folder=folder) for option in options]

    result = CliRunner().invoke(up_command, [*given, "--port", "0"])

    assert result.exit_code in (1, 2)
    assert message.format(file=file, folder=folder) in result.output
