"""Elementwise ops: one row an op, its name and its function on NumPy arrays.

f16 and bf16 operands are widened to float32 and the result is rounded once, as eager PyTorch does on the CPU. The
transcendental functions of float32 are computed in float64 and rounded, so that they are right to half a unit in the
last place (but for ties) and an oracle for any approximation. Integers wrap around.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .errors import ProgramError
from .rules import Call, Rule
from .values import Array, convert, get_dtype, is_float, is_narrow, is_signed

Function = Callable[..., Any]
"""A function of arrays of one shape."""


def apply(function: Function, *operands: Array) -> Array:
    """Applies an elementwise function: f16 and bf16 are computed in float32 and rounded once."""
    dtype = operands[0].dtype
    with np.errstate(all="ignore"):
        if is_narrow(dtype):
            result = np.asarray(function(*(x.astype(np.float32) for x in operands)))
            return result if result.dtype == np.bool_ else convert(result, dtype)
        return np.asarray(function(*operands))


def in_float64(function: Function) -> Function:
    """Returns the function on floats computed in float64 and rounded to the operands' type."""

    def wide(*operands: Array) -> Array:
        result = np.asarray(function(*(x.astype(np.float64) for x in operands)))
        return result.astype(operands[0].dtype)

    return wide


def on_scalars(function: Callable[[float], float]) -> Function:
    """Returns an array function that applies a scalar one to each element, in float64."""
    return np.vectorize(function, otypes=[np.float64])


# ---- functions that NumPy has not, or has otherwise ---------------------------


def sign(x: Array) -> Array:
    """Returns -1, 0 or 1; NaN and -0.0 give 0."""
    return np.asarray((x > 0).astype(x.dtype) - (x < 0).astype(x.dtype))


def divide(x: Array, y: Array) -> Array:
    """Returns x / y; integers truncate towards zero, and the lowest divided by -1 wraps around."""
    if is_float(x.dtype):
        return np.asarray(x / y)
    check_divisor(y)
    floor = x // y
    inexact = floor * y != x
    return np.asarray(floor + (inexact & ((x < 0) != (y < 0))).astype(x.dtype))


def remainder(x: Array, y: Array) -> Array:
    """Returns x - trunc(x / y) * y, with the sign of x."""
    if not is_float(x.dtype):
        check_divisor(y)
    return np.asarray(np.fmod(x, y))


def check_divisor(y: Array) -> None:
    """Raises ProgramError if an integer divisor is zero."""
    if np.any(y == 0):
        raise ProgramError("ZeroDivisionError")


def power(x: Array, y: Array) -> Array:
    """Returns x^y; integers by repeated squaring, wrapping; a negative exponent gives 0 but for the bases 1 and -1."""
    if is_float(x.dtype):
        return np.asarray(in_float64(np.power)(x, y))
    result = np.ones_like(x)
    square, exponent = x, np.where(y < 0, 0, y).astype(x.dtype)
    while np.any(exponent > 0):
        result = np.where(exponent & 1 != 0, result * square, result)
        square, exponent = square * square, exponent >> 1
    if is_signed(x.dtype):
        odd = y & 1 != 0
        negative = np.where(x == 1, 1, np.where(x == -1, np.where(odd, -1, 1), 0)).astype(x.dtype)
        result = np.where(y < 0, negative, result)
    return result.astype(x.dtype)


def shift_left(x: Array, y: Array) -> Array:
    """Returns x * 2^y, wrapping; 0 when y is negative or not below the bit width."""
    valid = (y >= 0) & (y < 8 * x.dtype.itemsize)
    return np.where(valid, x << np.where(valid, y, 0).astype(x.dtype), 0).astype(x.dtype)


def shift_right(x: Array, y: Array) -> Array:
    """Returns floor(x / 2^y); out of range, y shifts by width - 1 (signed) or gives 0 (unsigned)."""
    width = 8 * x.dtype.itemsize
    valid = (y >= 0) & (y < width)
    shifted = x >> np.where(valid, y, width - 1).astype(x.dtype)
    return shifted if is_signed(x.dtype) else np.where(valid, shifted, 0).astype(x.dtype)


# ---- the tables ---------------------------------------------------------------

UNARY: dict[str, Function] = {
    "neg": np.negative,
    "abs": np.abs,
    "sign": sign,
    "not": np.invert,
    "exp": in_float64(np.exp),
    "exp2": in_float64(np.exp2),
    "expm1": in_float64(np.expm1),
    "log": in_float64(np.log),
    "log2": in_float64(np.log2),
    "log10": in_float64(np.log10),
    "log1p": in_float64(np.log1p),
    "sqrt": np.sqrt,
    "rsqrt": in_float64(lambda x: 1 / np.sqrt(x)),
    "sin": in_float64(np.sin),
    "cos": in_float64(np.cos),
    "tan": in_float64(np.tan),
    "asin": in_float64(np.arcsin),
    "acos": in_float64(np.arccos),
    "atan": in_float64(np.arctan),
    "sinh": in_float64(np.sinh),
    "cosh": in_float64(np.cosh),
    "tanh": in_float64(np.tanh),
    "asinh": in_float64(np.arcsinh),
    "acosh": in_float64(np.arccosh),
    "atanh": in_float64(np.arctanh),
    "erf": in_float64(on_scalars(math.erf)),
    "erfc": in_float64(on_scalars(math.erfc)),
    "ceil": np.ceil,
    "floor": np.floor,
    "round": np.rint,
    "trunc": np.trunc,
}

BINARY: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": divide,
    "rem": remainder,
    "pow": power,
    "atan2": in_float64(np.arctan2),
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "shl": shift_left,
    "shr": shift_right,
}

COMPARISONS: dict[str, Function] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def _row(function: Function) -> Rule:
    return lambda call, operands: apply(function, *operands)


def compare(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.compare`."""
    return apply(COMPARISONS[call.case("comparison")], *operands)


def select(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.select`."""
    predicate, on_true, on_false = operands
    return np.where(predicate, on_true, on_false)


def convert_elements(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.convert`."""
    return convert(operands[0], get_dtype(call.result_type()))


def bitcast(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.bitcast`."""
    return operands[0].view(get_dtype(call.result_type()))


RULES: dict[str, Rule] = {
    **{f"prim.{name}": _row(function) for name, function in (UNARY | BINARY).items()},
    "prim.compare": compare,
    "prim.select": select,
    "prim.convert": convert_elements,
    "prim.bitcast": bitcast,
}
