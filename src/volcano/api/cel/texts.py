"""Texts and comments in the source of a rule, found in linear time: raw and long ones too, and those without an end."""

from __future__ import annotations

import re
from typing import Final

_RAW: Final = r"(?<!\w)(?:[bB]?[rR]|[rR][bB])(?:'''.*?(?:'''|\Z)|\"\"\".*?(?:\"\"\"|\Z)|'[^'\n]*'?|\"[^\"\n]*\"?)"
_ESCAPED: Final = (
    r"[bB]?(?:'''(?:[^\\]|\\.)*?(?:'''|\Z)|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)"
    r"|'(?:[^'\\\n]|\\.)*'?|\"(?:[^\"\\\n]|\\.)*\"?)"
)
TEXT: Final = rf"(?>(?s:{_RAW}|{_ESCAPED}))"
"""The pattern of one text, which takes nothing back once it has matched."""
_TEXTS_AND_COMMENTS: Final = re.compile(rf"//[^\n]*|{TEXT}")


def without_texts(source: str) -> str:
    """The source with an empty text in the place of each text and comment: what is left is what the rule does."""
    return _TEXTS_AND_COMMENTS.sub("''", source)
