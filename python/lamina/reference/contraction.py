"""Contractions: dot_general and convolution.

Floats are multiplied and accumulated in float64 and rounded once to the result's type; this is the exact reference that
any order of accumulation in a narrower type is compared with. Integers wrap around in the result's type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .reduction import windowed_size
from .rules import Call, Rule
from .shape import pad_with
from .values import Array, convert, get_dtype, is_float


def accumulator(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type in which products are accumulated."""
    return np.dtype(np.float64) if is_float(dtype) else dtype


def multiply(call: Call, lhs: Array, rhs: Array) -> Array:
    """Returns the product of a `prim.dot_general`, as batches of matrix products, in the type of lhs and rhs."""
    lhs_batch, rhs_batch = call.integers("lhs_batch"), call.integers("rhs_batch")
    lhs_contract, rhs_contract = call.integers("lhs_contract"), call.integers("rhs_contract")
    lhs_free = [dim for dim in range(lhs.ndim) if dim not in lhs_batch + lhs_contract]
    rhs_free = [dim for dim in range(rhs.ndim) if dim not in rhs_batch + rhs_contract]

    def sizes(operand: Array, dims: Sequence[int]) -> list[int]:
        return [operand.shape[dim] for dim in dims]

    def count(operand: Array, dims: Sequence[int]) -> int:
        return int(np.prod(sizes(operand, dims), dtype=np.int64))

    batches, depth = count(lhs, lhs_batch), count(lhs, lhs_contract)
    rows, columns = count(lhs, lhs_free), count(rhs, rhs_free)
    lhs_matrices = lhs.transpose(lhs_batch + lhs_free + lhs_contract).reshape(batches, rows, depth)
    rhs_matrices = rhs.transpose(rhs_batch + rhs_contract + rhs_free).reshape(batches, depth, columns)
    with np.errstate(all="ignore"):
        product = np.matmul(lhs_matrices, rhs_matrices)
    shape = sizes(lhs, lhs_batch) + sizes(lhs, lhs_free) + sizes(rhs, rhs_free)
    return np.asarray(product.reshape(shape))


def dot_general(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.dot_general`."""
    dtype = get_dtype(call.result_type())
    lhs, rhs = (operand.astype(accumulator(dtype)) for operand in operands)
    return convert(multiply(call, lhs, rhs), dtype)


def dilate(operand: Array, dilations: Sequence[int]) -> Array:
    """Returns the operand with dilation - 1 zeros between the elements of each dimension."""
    shape = [(size - 1) * dilation + 1 if size else 0 for size, dilation in zip(operand.shape, dilations, strict=True)]
    result = np.zeros(shape, operand.dtype)
    result[tuple(slice(None, None, dilation) for dilation in dilations)] = operand
    return result


def convolve(call: Call, lhs: Array, rhs: Array) -> Array:
    """Returns the product of a `prim.convolution` of float64 arrays.

    For each place in the window it adds a product of channels over the shifted and strided input.
    """
    strides, dilations, groups = call.integers("strides"), call.integers("dilations"), call.integer("groups")
    lhs = dilate(lhs, [1, 1, *call.integers("lhs_dilations")])
    lhs = pad_with(lhs, np.array(0.0), [0, 0, *call.integers("low")], [0, 0, *call.integers("high")])
    windows = rhs.shape[2:]
    counts = [windowed_size(*each) for each in zip(lhs.shape[2:], windows, strides, dilations, strict=True)]
    outputs, inputs = rhs.shape[:2]
    result = np.zeros((lhs.shape[0], outputs, *counts))
    with np.errstate(all="ignore"):
        for place in np.ndindex(*windows):
            bounds = zip(place, dilations, strides, counts, strict=True)
            window = tuple(slice(k * d, k * d + s * n, s) if n else slice(0, 0) for k, d, s, n in bounds)
            for group in range(groups):
                to = slice(group * (outputs // groups), (group + 1) * (outputs // groups))
                taken = lhs[(slice(None), slice(group * inputs, (group + 1) * inputs)) + window]
                result[:, to] += np.einsum("ni...,oi->no...", taken, rhs[(to, slice(None)) + tuple(place)])
    return result


def convolution(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.convolution`."""
    lhs, rhs = (operand.astype(np.float64) for operand in operands)
    return convert(convolve(call, lhs, rhs), get_dtype(call.result_type()))


RULES: dict[str, Rule] = {
    "prim.dot_general": dot_general,
    "prim.convolution": convolution,
}
