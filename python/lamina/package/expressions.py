"""Sizes as JSON: an integer, a symbol "s0", or [operator, operand, ...], made of MLIR's affine maps and of sympy's expressions.

lamina_runtime.expressions evaluates them. What is constant is folded here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import sympy

from lamina.errors import CompileError
from lamina_runtime.expressions import OPERATORS, evaluate

Expr = Union[int, str, list]


def make(operator: str, *operands: Expr) -> Expr:
    """An expression of an operator; folded where it is constant, or where 0 or 1 leaves it as it is."""
    constants = [operand for operand in operands if isinstance(operand, int)]
    if len(constants) == len(operands):
        return OPERATORS[operator](constants)
    if operator in ("+", "*"):
        neutral = 0 if operator == "+" else 1
        rest = [operand for operand in operands if not isinstance(operand, int)]
        constant = OPERATORS[operator](constants) if constants else neutral
        if operator == "*" and constant == 0:
            return 0
        operands = (*rest, *([constant] if constant != neutral else []))
        if len(operands) == 1:
            return operands[0]
    elif operator in ("//", "cdiv") and operands[1] == 1:
        return operands[0]
    return [operator, *operands]


def substitute(expr: Expr, symbols: Sequence[Expr]) -> Expr:
    """The expression with symbol k replaced by `symbols[k]`."""
    if isinstance(expr, int):
        return expr
    if isinstance(expr, str):
        return symbols[int(expr[1:])]
    return make(expr[0], *(substitute(operand, symbols) for operand in expr[1:]))


def product(exprs: Sequence[Expr]) -> Expr:
    """Their product."""
    return make("*", *exprs) if exprs else 1


# ---- MLIR


def of_map(attribute: Any) -> list[Expr]:
    """The expressions of an AffineMapAttr over symbols."""
    from mlir import ir

    return [_of_affine(expr) for expr in ir.AffineMapAttr(attribute).value.results]


def _of_affine(expr: Any) -> Expr:
    from mlir import ir

    expr = expr.maybe_downcast()
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineSymbolExpr):
        return f"s{expr.position}"
    if not isinstance(expr, ir.AffineBinaryExpr):
        raise ValueError(f"{expr} is no expression over symbols")
    operators = {
        ir.AffineAddExpr: "+",
        ir.AffineMulExpr: "*",
        ir.AffineModExpr: "%",
        ir.AffineFloorDivExpr: "//",
        ir.AffineCeilDivExpr: "cdiv",
    }
    return make(operators[type(expr)], _of_affine(expr.lhs), _of_affine(expr.rhs))


# ---- sympy


def of_size(size: Union[int, sympy.Expr], names: Mapping[sympy.Symbol, int]) -> Expr:
    """A size of the frontend.

    Args:
        size: an int, or an expression over torch's symbols.
        names: the number of each symbol.

    Raises:
        CompileError: the size depends on data, or has a form that no package can hold.
    """
    if isinstance(size, int):
        return size
    if size.is_Integer:
        return int(size)
    if size.is_Symbol:
        if size not in names:
            raise CompileError(
                f"the size {size} of a tensor that the program reads or returns depends on data",
                hint="a package cannot hold such a program.",
            )
        return f"s{names[size]}"
    operands = [of_size(operand, names) for operand in size.args] if not size.is_Pow else []
    if size.is_Pow and size.exp.is_Integer and 0 < size.exp <= 8:
        return product([of_size(size.base, names)] * int(size.exp))
    operator = _SYMPY.get(type(size).__name__)
    if operator is not None:
        return make(operator, *operands)
    rule = _SPECIAL.get(type(size).__name__)
    if rule is not None:
        return rule(size, names)
    raise CompileError(f"the size {size} is of a form that a package cannot hold")


def _quotient(operator: str) -> Callable[[sympy.Expr, Mapping[sympy.Symbol, int]], Expr]:
    def rule(size: sympy.Expr, names: Mapping[sympy.Symbol, int]) -> Expr:
        (inner,) = size.args
        if type(inner).__name__ != "IntTrueDiv":
            raise CompileError(f"the size {size} is of a form that a package cannot hold")
        return make(operator, *(of_size(operand, names) for operand in inner.args))

    return rule


def _modular(size: sympy.Expr, names: Mapping[sympy.Symbol, int]) -> Expr:
    base, divisor, modulus = (of_size(operand, names) for operand in size.args)
    return make("%", make("//", base, divisor), modulus)


_SYMPY = {
    "Add": "+",
    "Mul": "*",
    "FloorDiv": "//",
    "CleanDiv": "//",
    "Mod": "%",
    "PythonMod": "%",
    "Max": "max",
    "Min": "min",
}
_SPECIAL: dict[str, Callable[[sympy.Expr, Mapping[sympy.Symbol, int]], Expr]] = {
    "CeilToInt": _quotient("cdiv"),
    "FloorToInt": _quotient("//"),
    "ModularIndexing": _modular,
}

__all__ = ["Expr", "evaluate", "make", "of_map", "of_size", "product", "substitute"]
