"""Where the text of Triton IR differs between the versions of Triton that Lamina may meet: the one table of it.

Lamina emits what the newest version reads, in generic form; `spelled_for` says it as an older one does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

OLDEST = (3, 6)
"""The oldest version that Lamina is for, as its requirements say; scripts/setup.sh installs it beside the newest, for tests."""


@dataclass(frozen=True)
class Spelling:
    """Something that older versions spell in another way.

    Attributes:
        what: it is.
        since: the first version that reads the new spelling, and no longer the old one.
        new: a pattern of the new spelling.
        old: what takes its place, with the pattern's groups.
    """

    what: str
    since: tuple[int, int]
    new: str
    old: str


SPELLINGS = (
    Spelling("the type of a tensor descriptor", (3, 8), r"!tt\.tensordesc<([^<>]*)>", r"!tt.tensordesc<tensor<\1>>"),
)

AVOIDED = {
    "arith.negf of a block": "3.6 and 3.7 cannot lower it; `-0.0 - x` has its bits in all versions",
    "hints for caches": "`cache` and `evict` of versions before 3.9 are read by it and silently ignored, `cachePolicy` of 3.9 is "
    "not read by those",
}
"""What is never emitted, and why."""


def version_of(text: str) -> tuple[int, int]:
    """(3, 6) of ``3.6.0``."""
    major, minor = re.findall(r"\d+", text)[:2]
    return int(major), int(minor)


def spelled_for(version: str, text: str) -> str:
    """A module as a version of Triton reads it.

    Args:
        version: of Triton, such as ``3.6.0``.
        text: the module, as the newest version reads it.
    """
    for spelling in SPELLINGS:
        if version_of(version) < spelling.since:
            text = re.sub(spelling.new, spelling.old, text)
    return text
