"""Lamina: an MLIR compiler for PyTorch programs.

The package imports in milliseconds: everything that needs MLIR, TorchDynamo or a target is loaded when first used.
"""

import importlib
from typing import Any

_LAZY = {
    "CompileError": "lamina.errors",
    "Options": "lamina.options",
    "compile": "lamina.frontend.export",
    "import_program": "lamina.frontend.export",
    "load": "lamina_runtime",
}

__all__ = sorted(_LAZY)


def __getattr__(name: str) -> Any:
    module = _LAZY.get(name)
    if module is None:
        raise AttributeError(f"module 'lamina' has no attribute {name!r}")
    value = getattr(importlib.import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(_LAZY))
