"""Manual pages of every program, which groff formats without a complaint."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from click.testing import CliRunner

from volcano.app.main import COMMANDS
from volcano.app.man_command import man_command


def test_every_program_has_its_page_with_all_commands_and_flags(tmp_path: Path) -> None:
    done = CliRunner().invoke(man_command, [str(tmp_path / "man1")])

    assert done.exit_code == 0, done.output
    names = ("vcctl", "vsub", "vrun", "vjobs", "vinfo", "vqueues", "vacct", "vcancel", "vsuspend", "vresume", "volcano")
    pages = {path.stem: path.read_text() for path in (tmp_path / "man1").glob("*.1")}
    assert {*pages} == {*names}
    assert "vcctl job explain" in pages["vcctl"] and "\\-\\-dry\\-run" in pages["vcctl"]
    assert [name for name in COMMANDS if f'.SS "volcano {name}"'.replace("-", "\\-") not in pages["volcano"]] == []


def test_the_pages_are_good_roff(tmp_path: Path) -> None:
    formatter = shutil.which("groff") or shutil.which("mandoc")
    CliRunner().invoke(man_command, [str(tmp_path)])

    for path in sorted(tmp_path.glob("*.1")):
        assert path.read_text().startswith(".TH ")
        if formatter is not None and formatter.endswith("groff"):
            done = subprocess.run([formatter, "-man", "-Tutf8", "-ww", str(path)], capture_output=True, text=True)
            assert (done.returncode, done.stderr) == (0, "")
