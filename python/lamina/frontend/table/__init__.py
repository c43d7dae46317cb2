"""The table from ATen overloads to prim: one module a family, entries registered by decorator.

A lowering is a function ``f(b, *args, **kwargs)`` of a Builder and the ATen arguments, where tensors are Values and SymInts
are sizes. It returns a Value, or a tuple of them (None where a result cannot be made; using it is an error then).
``b.outputs`` holds the sizes and dtypes that the call returns. A lowering raises Unsupported for arguments that it
does not take.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, Optional

import torch

TABLE: dict[torch._ops.OpOverload, Callable[..., Any]] = {}

_FAMILIES = ("elementwise", "shape", "reduction", "pooling", "contraction", "indexing", "creation", "assertions")


class Unsupported(Exception):
    """An ATen call with arguments that its lowering cannot take."""


def lowers(*ops: torch._ops.OpOverload) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function as the lowering of these overloads."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for op in ops:
            assert op not in TABLE, f"{op} is in the table twice"
            TABLE[op] = function
        return function

    return register


def lookup(op: Any) -> Optional[Callable[..., Any]]:
    """The lowering of an overload, or None."""
    return TABLE.get(op)


for _family in _FAMILIES:
    importlib.import_module(f"{__name__}.{_family}")
