"""Sizes of a plan: an integer, a symbol such as "s0", or [operator, operand, ...]. Nothing is negative where it divides."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .errors import PackageError

OPERATORS: dict[str, Callable[[list[int]], int]] = {
    "+": sum,
    "*": math.prod,
    "//": lambda x: x[0] // x[1],
    "cdiv": lambda x: -(-x[0] // x[1]),
    "%": lambda x: x[0] % x[1],
    "max": max,
    "min": min,
}
_DEPTH = 100


def evaluate(expr: Any, symbols: Sequence[int]) -> int:
    """The value of an expression.

    Args:
        expr: the expression, which `check` has passed.
        symbols: the values of s0, s1, ...
    """
    if isinstance(expr, int):
        return expr
    if isinstance(expr, str):
        return symbols[int(expr[1:])]
    return OPERATORS[expr[0]]([evaluate(operand, symbols) for operand in expr[1:]])


def check(expr: Any, symbols: int, depth: int = _DEPTH) -> Any:
    """The expression, if it is one over this many symbols.

    Raises:
        PackageError: it is not.
    """
    if type(expr) is int:
        return expr
    if isinstance(expr, str) and expr[:1] == "s" and expr[1:].isdecimal() and int(expr[1:]) < symbols:
        return expr
    if isinstance(expr, list) and len(expr) >= 2 and expr[0] in OPERATORS and depth:
        if expr[0] in ("//", "cdiv", "%") and (len(expr) != 3 or expr[2] == 0):
            raise PackageError(f"the plan has {str(expr)[:60]} where a quotient must be")
        for operand in expr[1:]:
            check(operand, symbols, depth - 1)
        return expr
    raise PackageError(f"the plan has {str(expr)[:60]!r} where a size must be")
