"""docs/reference/reasons.md says what the table of reasons says, and every reason of the table is given somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from volcano.api.why.reasons import MAX_TEXT_CHARACTERS, REASONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "reasons.md"
INTERNAL_WORDS = re.compile(r"pipelined|predicate|session|snapshot|enqueue", re.IGNORECASE)


def test_the_page_of_reasons_is_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "tools" / "generate_reasons.py", "--check"], timeout=60)

    assert done.returncode == 0, "run tools/generate_reasons.py"


def test_examples_are_short_and_without_internal_words():
    rows = [line.split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    examples = [row[2].removesuffix(" |") for row in rows if len(row) == 3 and row[0][2:] in REASONS]

    assert len(examples) == len(REASONS) >= 60
    assert [text for text in examples if len(text) > MAX_TEXT_CHARACTERS or INTERNAL_WORDS.search(text)] == []


def test_every_reason_is_given_somewhere():
    sources = [path for path in (ROOT / "src").rglob("*.py") if path.name != "reasons.py" or path.parent.name != "why"]
    text = "\n".join(path.read_text() for path in sources)

    dynamic = {"SecretNotFound", "ConfigMapNotFound"}
    assert [name for name in REASONS if f'"{name}"' not in text and name not in dynamic] == []
