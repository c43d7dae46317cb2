"""What a compiled program needs to run: pure Python on top of torch, with no compiler.

``lamina_runtime.load("model.lamina")`` loads a package on the current CUDA device and returns what is called as the model is.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_LAZY = {
    "DriverError": "errors",
    "PackageError": "errors",
    "Program": "program",
    "load": "program",
    "read": "program",
}
__all__ = ["DriverError", "PackageError", "Program", "load", "read"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'lamina_runtime' has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
