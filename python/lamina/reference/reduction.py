"""Reductions, scans and sorting.

f16 and bf16 accumulate in float32 and round once. Sums of float32 are NumPy's pairwise sums in float32, so they are
compared with a tolerance; running sums and products of float32 accumulate in float64, as eager PyTorch's do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .errors import ProgramError
from .rules import Call, Rule
from .shape import pad_with
from .values import Array, convert, is_float, is_narrow

COMBINERS: dict[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "any": np.logical_or,
    "all": np.logical_and,
}


def lowest(dtype: np.dtype[Any]) -> Any:
    """The least element of a type: -inf, the lowest integer, or false."""
    if is_float(dtype):
        return -np.inf
    return False if dtype == np.bool_ else np.iinfo(dtype).min


def highest(dtype: np.dtype[Any]) -> Any:
    """The greatest element of a type: inf, the highest integer, or true."""
    if is_float(dtype):
        return np.inf
    return True if dtype == np.bool_ else np.iinfo(dtype).max


def identity(combiner: str, dtype: np.dtype[Any]) -> Array:
    """What combines with x to x, 0-d."""
    if combiner == "max":
        return np.array(lowest(dtype), dtype)
    if combiner == "min":
        return np.array(highest(dtype), dtype)
    return np.array({"sum": 0, "prod": 1, "any": False, "all": True}[combiner], dtype)


def combine(combiner: str, operand: Array, dims: tuple[int, ...]) -> Array:
    """Combines the elements over `dims`, which are dropped; nothing to combine gives the identity."""
    dtype = np.dtype(np.float32) if is_narrow(operand.dtype) else operand.dtype
    start = identity(combiner, dtype)
    with np.errstate(all="ignore"):
        if combiner in ("sum", "prod"):
            result = COMBINERS[combiner].reduce(operand.astype(dtype), axis=dims, dtype=dtype)
        elif combiner in ("max", "min"):
            result = COMBINERS[combiner].reduce(operand.astype(dtype), axis=dims, initial=start[()])
        else:
            result = COMBINERS[combiner].reduce(operand, axis=dims)
    return convert(np.asarray(result), operand.dtype)


def reduce(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.reduce`."""
    return combine(call.case("combiner"), operands[0], tuple(call.integers("dims")))


def arg_reduce(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.arg_reduce`: the first extremum; NumPy too takes NaN for the largest and the smallest."""
    (operand,), dim = operands, call.integer("dim")
    if operand.shape[dim] == 0:
        raise ProgramError(f"dimension {dim} has size 0 and so no extremum")
    comparable = operand.astype(np.float32) if is_narrow(operand.dtype) else operand
    find = {"max": np.argmax, "min": np.argmin}[call.case("extremum")]
    return np.asarray(find(comparable, axis=dim), np.int64)


def scan(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.scan`: inclusive running combination."""
    (operand,), combiner = operands, call.case("combiner")
    dtype = operand.dtype
    if is_narrow(dtype):
        dtype = np.dtype(np.float32)
    elif dtype == np.float32:
        dtype = np.dtype(np.float64)
    with np.errstate(all="ignore"):
        result = COMBINERS[combiner].accumulate(operand.astype(dtype), axis=call.integer("dim"), dtype=dtype)
    return convert(result, operand.dtype)


def sort(call: Call, operands: Sequence[Array]) -> tuple[Array, Array]:
    """`prim.sort`: stable; NumPy too takes NaN for the largest.

    Descending is the ascending order of the reversed elements, read backwards, which keeps equal elements in order.
    """
    (operand,), dim = operands, call.integer("dim")
    keys = operand.astype(np.float32) if is_narrow(operand.dtype) else operand
    if call.boolean("descending"):
        order = np.argsort(np.flip(keys, dim), axis=dim, kind="stable")
        order = keys.shape[dim] - 1 - np.flip(order, dim)
    else:
        order = np.argsort(keys, axis=dim, kind="stable")
    return np.take_along_axis(operand, order, dim), order.astype(np.int64)


def windowed_size(size: int, window: int, stride: int, dilation: int) -> int:
    """Number of windows over `size` padded elements; none where a window does not fit."""
    return max(0, (size - (window - 1) * dilation - 1) // stride + 1)


def stack_windows(call: Call, operand: Array, fill: Array) -> Array:
    """Returns, on a new first dimension, what each place of the window sees: a shifted and strided copy of the operand.

    Args:
        call: a `prim.reduce_window`.
        operand: its operand.
        fill: what elements outside count as, 0-d.
    """
    windows, strides, dilations = (call.integers(name) for name in ("window_sizes", "strides", "dilations"))
    padded = pad_with(operand, fill, call.integers("low"), call.integers("high"))
    counts = [windowed_size(*each) for each in zip(padded.shape, windows, strides, dilations, strict=True)]
    copies = []
    for place in np.ndindex(*windows):
        bounds = zip(place, dilations, strides, counts, strict=True)
        copies.append(padded[tuple(slice(k * d, k * d + s * n, s) if n else slice(0, 0) for k, d, s, n in bounds)])
    return np.stack(copies)


def reduce_window(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.reduce_window`."""
    (operand,), combiner = operands, call.case("combiner")
    return combine(combiner, stack_windows(call, operand, identity(combiner, operand.dtype)), (0,))


RULES: dict[str, Rule] = {
    "prim.reduce": reduce,
    "prim.arg_reduce": arg_reduce,
    "prim.scan": scan,
    "prim.sort": sort,
    "prim.reduce_window": reduce_window,
}
