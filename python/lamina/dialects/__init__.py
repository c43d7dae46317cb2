"""Python classes of Lamina's dialects, generated from their ODS, and contexts that know them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlir import ir


@functools.cache
def _register_classes() -> None:
    """Tells MLIR where the classes of these dialects are; else it searches for them anew at every attribute."""
    from mlir._mlir_libs._mlir import globals as registry

    registry.append_dialect_search_prefix(__name__)


def make_context() -> ir.Context:
    """Returns a new MLIR context in which Lamina's dialects are registered and loaded."""
    from mlir import ir

    from lamina._lib import _lamina

    _register_classes()
    context = ir.Context()
    _lamina.register_dialects(context)
    return context


def parse(text: str, context: ir.Context | None = None) -> ir.Module:
    """Parses and verifies a module of Lamina's dialects.

    Args:
        text: MLIR assembly.
        context: where to make the module; a new context if absent.

    Raises:
        mlir.ir.MLIRError: the text does not parse or the module does not verify.
    """
    from mlir import ir

    return ir.Module.parse(text, context if context is not None else make_context())
