"""The layers that a program can be looked at: the text of a phase, or a target's code, of a prim module."""

from __future__ import annotations

import io
from typing import Any, Optional, Union

from lamina.errors import CompileError

COMMON = ("prim", "linalg")
"""Phases that need no target."""


def phases_of(target: Any) -> list[str]:
    """The names of what `emit` can make for a target, in the order of compilation."""
    own = [name for name, _ in target.phases()] if hasattr(target, "phases") else []
    kinds = list(getattr(target, "emits", ()))
    return ["prim", *(name for name in own if name not in kinds), *([] if "linalg" in own else ["linalg"]), *kinds]


def emit(module: Any, phase: str, target: Any) -> Union[str, bytes]:
    """A prim module at one of its later layers; the module itself is left as it is.

    Args:
        module: the prim module.
        phase: ``prim``; ``linalg``, the whole program in plain upstream MLIR, without kernels; a phase of the target,
            or a kind of code that it makes.
        target: from lamina.targets.get_target.

    Raises:
        ValueError: the target has no such phase.
        CompileError: a pass failed.
    """
    if phase == "prim":
        return str(module)
    copy = copy_module(module)
    if phase == "linalg":
        return _plain_linalg(copy)
    if phase in getattr(target, "emits", ()):
        return target.emit(copy, phase)
    if phase not in phases_of(target):
        raise ValueError(f"the target {target.name!r} has no phase {phase!r}; it has {', '.join(phases_of(target))}")
    for _ in target.lower(copy, "prim", phase):
        pass
    return str(copy)


def copy_module(module: Any, context: Optional[Any] = None) -> Any:
    """A copy of a module in a context of its own: a pass that crashes costs no more than that. Or in a given context."""
    from mlir import ir

    from lamina.dialects import make_context

    # Bytecode has all that the text has, in a fraction of the time.
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return ir.Module.parse(buffer.getvalue(), make_context() if context is None else context)


def _plain_linalg(module: Any) -> str:
    """The unfused program as linalg on tensors, with nothing of Lamina's own left in it."""
    run_passes(module, "func.func(lamina-convert-prim-to-linalg,canonicalize,cse)", "linalg")

    def strip(operation: Any) -> Any:
        from mlir import ir

        for name in list(operation.attributes):
            if name.startswith(("prim.", "lamina.", "kernel.")):
                del operation.attributes[name]
        if "arg_attrs" in operation.attributes:
            del operation.attributes["arg_attrs"]
        return ir.WalkResult.ADVANCE

    module.operation.walk(strip)
    return str(module)


def run_passes(module: Any, passes: str, phase: str) -> None:
    """Runs passes that lead to a phase on a module, in place.

    Raises:
        CompileError: a pass failed; after a crash the module's context is lost.
    """
    from lamina._lib import _lamina

    try:
        _lamina.run_pipeline(module.operation, f"builtin.module({passes})")
    except _lamina.CompilerCrash as error:
        raise CompileError.from_crash(str(error), phase) from error
    except _lamina.CompilerError as error:
        raise CompileError.from_diagnostics(
            str(error), f"the program could not be taken to the phase {phase!r}"
        ) from error
