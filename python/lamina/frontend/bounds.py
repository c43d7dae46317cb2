"""Smallest and largest elements of integer values, as sizes, so that needless range checks of indices are not made."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Optional

import sympy

from .sizes import Size, normalise

Bounds = Optional[tuple[Size, Size]]
"""Smallest and largest element, or None where they are not known."""


class BoundsAnalysis:
    """Arithmetic of bounds.

    Args:
        range_of: smallest and largest value of a symbol (None: unbounded).
    """

    def __init__(self, range_of: Callable[[sympy.Symbol], tuple[int, Optional[int]]]):
        self.range_of = range_of

    def is_nonnegative(self, size: Size) -> bool:
        """Whether a size is at least 0 for every value of its symbols; False also where that is not seen."""
        if isinstance(size, int):
            return size >= 0
        lowest = 0.0
        for term in sympy.Add.make_args(sympy.expand(size)):
            coefficient, rest = term.as_coeff_Mul()
            factors = sympy.Mul.make_args(rest)
            if not coefficient.is_Integer or not all(f.is_Symbol or f == 1 for f in factors):
                return False
            extreme = 1.0
            for factor in factors:
                if factor.is_Symbol:
                    low, high = self.range_of(factor)
                    extreme *= low if coefficient > 0 else (math.inf if high is None else high)
            lowest += int(coefficient) * extreme
        return lowest >= 0

    def is_at_most(self, a: Size, b: Size) -> bool:
        return self.is_nonnegative(normalise(sympy.sympify(b) - a))

    def union(self, *bounds: Bounds) -> Bounds:
        """Bounds of a value that is one of several."""
        result = bounds[0]
        for other in bounds[1:]:
            if result is None or other is None:
                return None
            low = self._smaller(result[0], other[0])
            high = self._larger(result[1], other[1])
            result = None if low is None or high is None else (low, high)
        return result

    def _smaller(self, a: Size, b: Size) -> Optional[Size]:
        return a if self.is_at_most(a, b) else b if self.is_at_most(b, a) else None

    def _larger(self, a: Size, b: Size) -> Optional[Size]:
        return b if self.is_at_most(a, b) else a if self.is_at_most(b, a) else None

    def binary(self, name: str, x: Bounds, y: Bounds) -> Bounds:
        """Bounds of an op's result, taken to be within i64."""
        if x is None or y is None:
            return None
        if name == "add":
            return normalise(x[0] + y[0]), normalise(x[1] + y[1])
        if name == "sub":
            return normalise(x[0] - y[1]), normalise(x[1] - y[0])
        if name == "mul" and self.is_nonnegative(x[0]) and self.is_nonnegative(y[0]):
            return normalise(x[0] * y[0]), normalise(x[1] * y[1])
        if name in ("max", "min"):
            choose = self._larger if name == "max" else self._smaller
            low, high = choose(x[0], y[0]), choose(x[1], y[1])
            return None if low is None or high is None else (low, high)
        return None

    def within(self, x: Bounds, low: Size, high: Size) -> bool:
        """Whether all elements are in low..high."""
        return x is not None and self.is_at_most(low, x[0]) and self.is_at_most(x[1], high)


def of_elements(values: Sequence[int]) -> Bounds:
    return (min(values), max(values)) if len(values) else None
