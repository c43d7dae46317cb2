"""Ops that make or rearrange elements: constants, iota, broadcast, reshape, slices, gather, scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from . import elementwise
from .errors import InvalidModuleError, ProgramError
from .rules import Call, Rule
from .values import Array, convert, get_dtype, read_constant


def constant(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.constant`."""
    return read_constant(call.op.attributes["value"])


def size(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.size`: the value of one expression, 0-d."""
    (value,) = call.exprs("value")
    return np.array(value, np.int64)


def iota(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.iota`: result[i0, ..., in] = i_dim."""
    indices = np.indices(call.result_shape(), np.int64)[call.integer("dim")]
    return convert(indices, get_dtype(call.result_type()))


def broadcast(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.broadcast`: operand dimension k becomes result dimension dims[k]."""
    (operand,), dims, shape = operands, call.integers("dims"), call.result_shape()
    if any(shape[dim] != size for dim, size in zip(dims, operand.shape, strict=True)):
        raise InvalidModuleError(f"broadcasts shape {list(operand.shape)} to dimensions {dims} of {list(shape)}")
    placed = operand.reshape([shape[dim] if dim in dims else 1 for dim in range(len(shape))])
    return np.broadcast_to(placed, shape)


def transpose(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.transpose`: result dimension k is operand dimension permutation[k]."""
    return np.transpose(operands[0], call.integers("permutation"))


def reshape(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.reshape`."""
    (operand,), shape = operands, call.result_shape()
    if operand.size != np.prod(shape, dtype=np.int64):
        raise InvalidModuleError(
            f"reshapes {list(operand.shape)} to {list(shape)}, which has another number of elements"
        )
    return operand.reshape(shape)


def slice_elements(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.slice`: result[i] = operand[starts + i * strides], up to limits."""
    (operand,), starts, limits, strides = operands, call.exprs("starts"), call.exprs("limits"), call.integers("strides")
    for dim, (start, limit) in enumerate(zip(starts, limits, strict=True)):
        if not 0 <= start <= limit <= operand.shape[dim]:
            raise InvalidModuleError(f"slices {start} to {limit} of dimension {dim} with size {operand.shape[dim]}")
    return operand[tuple(slice(*bounds) for bounds in zip(starts, limits, strides, strict=True))]


def pad_with(operand: Array, value: Array, low: Sequence[int], high: Sequence[int]) -> Array:
    """Returns the operand with `value` around it: `low` elements before and `high` after; negative numbers crop.

    Args:
        operand: of any rank.
        value: 0-d, of the operand's element type.
        low: one number a dimension.
        high: one number a dimension.
    """
    shape = [max(0, before + size + after) for before, size, after in zip(low, operand.shape, high, strict=True)]
    result = np.full(shape, value, operand.dtype)
    source, target = [], []
    for before, size, total in zip(low, operand.shape, shape, strict=True):
        begin, end = max(0, before), max(0, min(total, before + size))
        target.append(slice(min(begin, end), end))
        source.append(slice(min(begin, end) - before, end - before) if begin < end else slice(0, 0))
    result[tuple(target)] = operand[tuple(source)]
    return result


def pad(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.pad`."""
    (operand, value), low, high = operands, call.exprs("low"), call.exprs("high")
    if min((*low, *high), default=0) < 0:
        raise InvalidModuleError(f"pads by a negative number: low {list(low)}, high {list(high)}")
    return pad_with(operand, value, low, high)


def concatenate(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.concatenate`."""
    return np.concatenate(operands, call.integer("dim"))


def reverse(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.reverse`."""
    return np.flip(operands[0], tuple(call.integers("dims")))


def check_indices(operand: Array, indices: Sequence[Array], dims: Sequence[int]) -> None:
    """Raises ProgramError if an index is outside 0..size-1 of its dimension."""
    for dim, index in zip(dims, indices, strict=True):
        wrong = index[(index < 0) | (index >= operand.shape[dim])]
        if wrong.size:
            raise ProgramError(f"index {wrong[0]} is out of bounds for dimension {dim} with size {operand.shape[dim]}")


def gather(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.gather`: result[b..., p...] = operand with dims[k] at indices[k][b...] and the others at p..., in order."""
    operand, *indices = operands
    dims = call.integers("dims")
    check_indices(operand, indices, dims)
    indexed_first = np.moveaxis(operand, dims, range(len(dims)))
    return np.asarray(indexed_first[tuple(indices)])


SCATTER_MODES: dict[str, elementwise.Function] = {
    "assign": lambda _, update: update,
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}


def scatter(call: Call, operands: Sequence[Array]) -> Array:
    """`prim.scatter`: updates in row-major order, each combined in the element type."""
    operand, updates, *indices = operands
    dims, combine = call.integers("dims"), SCATTER_MODES[call.case("mode")]
    check_indices(operand, indices, dims)
    result = np.array(operand)
    indexed_first = np.moveaxis(result, dims, range(len(dims)))
    for batch in np.ndindex(indices[0].shape):
        place = tuple(index[batch] for index in indices)
        indexed_first[place] = elementwise.apply(combine, indexed_first[place], updates[batch])
    return result


RULES: dict[str, Rule] = {
    "prim.constant": constant,
    "prim.size": size,
    "prim.iota": iota,
    "prim.broadcast": broadcast,
    "prim.transpose": transpose,
    "prim.reshape": reshape,
    "prim.slice": slice_elements,
    "prim.pad": pad,
    "prim.concatenate": concatenate,
    "prim.reverse": reverse,
    "prim.gather": gather,
    "prim.scatter": scatter,
}
