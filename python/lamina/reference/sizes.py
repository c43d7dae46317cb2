"""Sizes: affine expressions over a function's symbols, and the symbols' values in a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlir import ir

from .errors import ArgumentError, InvalidModuleError

Symbols = Mapping[int, int]
"""Value of each symbol, by its number."""


def evaluate(expr: ir.AffineExpr, symbols: Symbols) -> int:
    """Returns the value of a size expression.

    Raises:
        InvalidModuleError: a symbol in it has no value.
    """
    expr = expr.maybe_downcast()
    if isinstance(expr, ir.AffineConstantExpr):
        return int(expr.value)
    if isinstance(expr, ir.AffineSymbolExpr):
        if expr.position not in symbols:
            raise InvalidModuleError(f"nothing gives the symbol s{expr.position} a value")
        return symbols[expr.position]
    if not isinstance(expr, ir.AffineBinaryExpr):
        raise InvalidModuleError(f"{expr} is no size expression")
    lhs, rhs = evaluate(expr.lhs, symbols), evaluate(expr.rhs, symbols)
    if isinstance(expr, ir.AffineAddExpr):
        return lhs + rhs
    if isinstance(expr, ir.AffineMulExpr):
        return lhs * rhs
    if rhs <= 0:
        raise InvalidModuleError(f"{expr} divides by {rhs}")
    if isinstance(expr, ir.AffineModExpr):
        return lhs % rhs
    if isinstance(expr, ir.AffineFloorDivExpr):
        return lhs // rhs
    return -(-lhs // rhs)


def evaluate_all(attr: ir.Attribute, symbols: Symbols) -> tuple[int, ...]:
    """Returns the values of a list of size expressions, an AffineMapAttr."""
    return tuple(evaluate(expr, symbols) for expr in ir.AffineMapAttr(attr).value.results)


def bind_symbols(sizes: Sequence[ir.Attribute | None], shapes: Sequence[tuple[int, ...]]) -> dict[int, int]:
    """Finds the value of each symbol from the shapes of a function's arguments.

    A symbol has the size of the first dimension whose expression is that bare symbol.

    Args:
        sizes: `prim.sizes` of each argument, None where it has none.
        shapes: shape of each argument, of the same rank as its sizes.
    """
    symbols: dict[int, int] = {}
    for attr, shape in zip(sizes, shapes, strict=True):
        if attr is None:
            continue
        for expr, size in zip(ir.AffineMapAttr(attr).value.results, shape, strict=True):
            expr = expr.maybe_downcast()
            if isinstance(expr, ir.AffineSymbolExpr):
                symbols.setdefault(expr.position, size)
    return symbols


def check_sizes(what: str, attr: ir.Attribute, shape: tuple[int, ...], symbols: Symbols) -> None:
    """Raises ArgumentError unless the sizes that the expressions give are the shape.

    Args:
        what: the value in question, as a message should call it.
        attr: its sizes, an AffineMapAttr.
        shape: the shape that it has.
        symbols: values of the symbols.
    """
    results = ir.AffineMapAttr(attr).value.results
    if len(results) != len(shape):
        raise ArgumentError(f"{what} has shape {list(shape)}, and its sizes are {len(results)}: {attr}")
    for dim, (expr, size) in enumerate(zip(results, shape, strict=True)):
        expected = evaluate(expr, symbols)
        if expected != size:
            values = ", ".join(f"s{number} = {value}" for number, value in sorted(symbols.items()))
            raise ArgumentError(f"size of {what} in dimension {dim} is {size}, not {expr} = {expected} ({values})")


def check_ranges(ranges: ir.Attribute | None, symbols: Symbols) -> None:
    """Raises ArgumentError unless each symbol is within the bounds that `prim.symbols` gives it."""
    if ranges is None:
        return
    for number, entry in enumerate(ir.ArrayAttr(ranges)):
        bounds = ir.DictAttr(entry)
        if number not in symbols:
            continue
        low = ir.IntegerAttr(bounds["min"]).value if "min" in bounds else 0
        high = ir.IntegerAttr(bounds["max"]).value if "max" in bounds else None
        if symbols[number] < low or (high is not None and symbols[number] > high):
            allowed = f"at least {low}" if high is None else f"from {low} to {high}"
            raise ArgumentError(f"symbol s{number} is {symbols[number]}; it must be {allowed}")
