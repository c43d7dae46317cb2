"""Options of compilation, bound once from keyword arguments, an options dictionary and the environment."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Optional

from lamina.errors import SettingError

FALLBACKS = ("eager", "error")


@dataclasses.dataclass(frozen=True)
class Options:
    """How to compile.

    Attributes:
        target: the target's name, such as ``cpu`` or ``reference``.
        fallback: what becomes of an operator that Lamina cannot compile: ``eager`` lets PyTorch run it, with a warning;
            ``error`` raises lamina.CompileError. The environment variable LAMINA_FALLBACK, if set, wins.
        freeze: whether weights become constants that are folded and packed once.
        schedule: a file of measured choices, by which kernels are compiled (see lamina_runtime.tune); of targets that take one.
    """

    target: str = "cpu"
    fallback: str = "eager"
    freeze: bool = False
    schedule: Optional[str] = None

    def __post_init__(self) -> None:
        if self.fallback not in FALLBACKS:
            raise ValueError(f"fallback is {self.fallback!r}, expected one of {', '.join(FALLBACKS)}")

    @classmethod
    def of(cls, values: Optional[Mapping[str, Any]] = None, **defaults: Any) -> Options:
        """Options from a dictionary over these defaults.

        Raises:
            ValueError: for an unknown option or a value that is not allowed; SettingError if it is the environment's.
        """
        known = {field.name for field in dataclasses.fields(cls)}
        unknown = set(values or {}) - known
        if unknown:
            raise ValueError(f"unknown option {sorted(unknown)[0]!r}; there are {', '.join(sorted(known))}")
        options = cls(**{**defaults, **dict(values or {})})
        fallback = environment_fallback()
        return dataclasses.replace(options, fallback=fallback) if fallback else options


def environment_fallback() -> Optional[str]:
    """LAMINA_FALLBACK, if it is set.

    Raises:
        SettingError: it is none of the fallbacks.
    """
    fallback = os.environ.get("LAMINA_FALLBACK")
    if fallback and fallback not in FALLBACKS:
        raise SettingError(f"LAMINA_FALLBACK is {fallback!r}, expected one of {', '.join(FALLBACKS)}")
    return fallback or None
