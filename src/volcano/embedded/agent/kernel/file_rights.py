"""What a user may do with a file, by the file's mode alone; root's rights are left out. Pure."""

from __future__ import annotations

import os
from collections.abc import Collection

_OWNER_SHIFT, _GROUP_SHIFT = 6, 3


def may(bits: int, found: os.stat_result, uid: int, groups: Collection[int]) -> bool:
    """Whether all of these rights, given as those of others (S_IROTH, S_IWOTH, S_IXOTH), are the user's."""
    shift = _OWNER_SHIFT if found.st_uid == uid else _GROUP_SHIFT if found.st_gid in groups else 0
    return (found.st_mode >> shift) & bits == bits
