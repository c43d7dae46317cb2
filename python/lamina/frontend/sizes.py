"""Size expressions: from torch's SymInts (sympy) to affine expressions over a function's index symbols.

A size is a Python int when it is known, else a sympy expression over torch's shape symbols. Both support + - *, and
`floor_divide`, `ceil_divide` and `modulo` below, so the table's builders compute with them freely.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional, Union

import mlir.ir as ir
import sympy
import torch
from torch.utils._sympy.functions import (
    CeilToInt,
    CleanDiv,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    Mod,
    ModularIndexing,
    PythonMod,
)
from torch.utils._sympy.functions import Max as TorchMax
from torch.utils._sympy.functions import Min as TorchMin
from torch.utils._sympy.symbol import SymT, symbol_is_type

Size = Union[int, sympy.Expr]


EXTREMA = (TorchMax, TorchMin, sympy.Max, sympy.Min)
"""What no affine expression says."""


class NotAffine(Exception):
    """An expression that no affine map can hold."""


def to_size(value: Union[int, torch.SymInt, sympy.Expr]) -> Size:
    """An int or SymInt of torch as a size."""
    if type(value) is int:
        return value
    if isinstance(value, torch.SymInt):
        value = value.node.expr
    if isinstance(value, sympy.Expr):
        return int(value) if value.is_Integer else value
    return int(value)


def to_sizes(values: Iterable[Union[int, torch.SymInt, sympy.Expr]]) -> tuple[Size, ...]:
    return tuple([to_size(value) for value in values])


def normalise(size: Size) -> Size:
    return int(size) if isinstance(size, sympy.Expr) and size.is_Integer else size


def floor_divide(a: Size, b: Size) -> Size:
    return a // b if isinstance(a, int) and isinstance(b, int) else normalise(FloorDiv(a, b))


def ceil_divide(a: Size, b: Size) -> Size:
    return floor_divide(a + b - 1, b)


def modulo(a: Size, b: Size) -> Size:
    return a % b if isinstance(a, int) and isinstance(b, int) else normalise(PythonMod(a, b))


def product(sizes: Iterable[Size]) -> Size:
    result: Size = 1
    for size in sizes:
        result = result * size
    return normalise(sympy.expand(result)) if isinstance(result, sympy.Expr) else result


def same_sizes(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether two lists of sizes are equal, in whatever form they are written."""
    return len(a) == len(b) and all(x == y or sympy.expand(sympy.sympify(x) - y) == 0 for x, y in zip(a, b))


def is_unbacked(size: Size) -> bool:
    """Whether a size depends on data, so that only running the program gives it."""
    return isinstance(size, sympy.Basic) and any(symbol_is_type(s, SymT.UNBACKED_INT) for s in size.free_symbols)


class SymbolTable:
    """The index symbols s0, s1, ... of a function, and the affine form of sizes over them.

    Args:
        ranges: torch's value ranges of its symbols.
    """

    def __init__(self, ranges: Mapping[sympy.Symbol, Any] = {}) -> None:
        self.numbers: dict[sympy.Symbol, int] = {}
        self.ranges = ranges

    def add(self, symbol: sympy.Symbol) -> int:
        return self.numbers.setdefault(symbol, len(self.numbers))

    def range_of(self, symbol: sympy.Symbol) -> tuple[int, Optional[int]]:
        """Smallest and largest value of a symbol; None means unbounded."""
        bounds = self.ranges.get(symbol)
        if bounds is None:
            return 0, None
        low = int(bounds.lower) if bounds.lower.is_Integer else 0
        high = int(bounds.upper) if bounds.upper.is_Integer and bounds.upper < 2**62 else None
        return max(low, 0), high

    @property
    def symbols(self) -> list[sympy.Symbol]:
        return list(self.numbers)

    def affine(self, size: Size) -> ir.AffineExpr:
        """The affine expression of a size: terms in symbols in order, then the others, then the constant.

        Raises:
            NotAffine: for maxima, divisions by sizes and symbols that no input has.
        """
        if isinstance(size, int):
            return ir.AffineConstantExpr.get(size)
        size = sympy.expand(size)
        terms = []
        for term in sympy.Add.make_args(size):
            coefficient, rest = term.as_coeff_Mul()
            if not coefficient.is_Integer:
                raise NotAffine(str(size))
            rank = (2, 0) if rest == 1 else (0, self._number(rest)) if rest.is_Symbol else (1, str(rest))
            terms.append((rank, int(coefficient), rest))
        terms.sort(key=lambda term: (term[0][0], term[0][1]))
        result = None
        for _, coefficient, rest in terms:
            if rest == 1:
                part = ir.AffineConstantExpr.get(coefficient)
            else:
                part = self._factor_product(rest)
                if coefficient != 1:
                    part = ir.AffineExpr.get_mul(part, ir.AffineConstantExpr.get(coefficient))
            result = part if result is None else ir.AffineExpr.get_add(result, part)
        return result if result is not None else ir.AffineConstantExpr.get(0)

    def _number(self, symbol: sympy.Symbol) -> int:
        number = self.numbers.get(symbol)
        if number is None:
            raise NotAffine(f"{symbol}, which depends on data or is the size of no input")
        return number

    def _factor_product(self, expr: sympy.Expr) -> ir.AffineExpr:
        result = None
        for factor in sympy.Mul.make_args(expr):
            part = self._factor(factor)
            result = part if result is None else ir.AffineExpr.get_mul(result, part)
        return result

    def _factor(self, expr: sympy.Expr) -> ir.AffineExpr:
        if expr.is_Symbol:
            return ir.AffineSymbolExpr.get(self._number(expr))
        if expr.is_Integer or expr.is_Add:
            return self.affine(normalise(expr))
        if expr.is_Pow and expr.exp.is_Integer and 0 < expr.exp <= 8:
            base, result = self._factor(expr.base), None
            for _ in range(int(expr.exp)):
                result = base if result is None else ir.AffineExpr.get_mul(result, base)
            return result
        if isinstance(expr, (FloorDiv, CleanDiv)):
            return ir.AffineExpr.get_floor_div(
                self.affine(normalise(expr.args[0])), self.affine(normalise(expr.args[1]))
            )
        if isinstance(expr, (Mod, PythonMod, sympy.Mod)):
            return ir.AffineExpr.get_mod(self.affine(normalise(expr.args[0])), self.affine(normalise(expr.args[1])))
        if isinstance(expr, ModularIndexing):
            base, divisor, modulus = expr.args
            quotient = ir.AffineExpr.get_floor_div(self.affine(normalise(base)), self.affine(normalise(divisor)))
            return ir.AffineExpr.get_mod(quotient, self.affine(normalise(modulus)))
        if isinstance(expr, (CeilToInt, FloorToInt)) and isinstance(expr.args[0], IntTrueDiv):
            numerator, denominator = (self.affine(normalise(arg)) for arg in expr.args[0].args)
            divide = ir.AffineExpr.get_ceil_div if isinstance(expr, CeilToInt) else ir.AffineExpr.get_floor_div
            return divide(numerator, denominator)
        if isinstance(expr, EXTREMA):
            raise NotAffine(f"{expr}, a maximum or minimum of sizes")
        raise NotAffine(str(expr))

    def exprs(self, sizes: Sequence[Size]) -> ir.AffineMap:
        """The list of sizes as an affine map without dimensions, with as many symbols as it uses."""
        results = [self.affine(size) for size in sizes]
        used = -1
        for size in sizes:
            if isinstance(size, sympy.Expr):
                used = max([used, *(self.numbers[symbol] for symbol in size.free_symbols)])
        return ir.AffineMap.get(0, used + 1, results)
