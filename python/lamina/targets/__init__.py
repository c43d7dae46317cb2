"""Targets: what makes an executable of a program."""

from __future__ import annotations

import importlib
from typing import Any

from lamina.errors import CompileError

_BUILT_IN = {"cpu": ("lamina.targets.cpu", "CPUTarget"), "reference": ("lamina.targets.reference", "ReferenceTarget")}


def get_target(name: str) -> Any:
    """The target of a name such as ``cpu`` or ``cuda:sm_90``.

    Raises:
        CompileError: there is none of that name.
    """
    base = name.partition(":")[0]
    if base not in _BUILT_IN:
        raise CompileError(f"there is no target {name!r}", hint=f"Targets: {', '.join(sorted(_BUILT_IN))}.")
    module, attribute = _BUILT_IN[base]
    return getattr(importlib.import_module(module), attribute)()
