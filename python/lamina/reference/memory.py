"""Memory: the ops of the kernel dialect that make tensors over it, view and alloc."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .errors import InvalidModuleError
from .rules import Call
from .values import Array, get_dtype


def get_memory(value: Array) -> tuple[Array, int]:
    """Returns the bytes of the memory that a value lies in, and where in them the value starts."""
    root = value
    while isinstance(root.base, np.ndarray):
        root = root.base
    if not root.flags.c_contiguous:
        raise InvalidModuleError("the value lies in memory that is not contiguous")
    start = value.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    return root.reshape(-1).view(np.uint8), start


def view_memory(value: Array, offset: int, sizes: Sequence[int], strides: Sequence[int]) -> Array:
    """Returns the array whose element i is at offset + sum(i * strides) of the value's memory.

    Args:
        value: any value; positions are counted in elements from its start.
        offset: position of element 0.
        sizes: shape of the result.
        strides: in elements, one a dimension, not negative.
    """
    if 0 in sizes:
        return np.zeros(sizes, value.dtype)
    memory, start = get_memory(value)
    width = value.itemsize
    last = offset + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
    if min((offset, *strides)) < 0 or start + (last + 1) * width > memory.size:
        raise InvalidModuleError(f"views elements {offset} to {last} of memory with {(memory.size - start) // width}")
    return np.ndarray(sizes, value.dtype, memory, start + offset * width, [stride * width for stride in strides])


def lay_out(value: Array, strides: Sequence[int]) -> Array:
    """Returns the value in new memory with these strides, in elements."""
    extent = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, strides, strict=True))
    result = view_memory(np.zeros(extent, value.dtype), 0, value.shape, strides) if value.size else value
    result[...] = value
    return result


def view(call: Call, operands: Sequence[Array]) -> Array:
    """`kernel.view`."""
    (offset,) = call.exprs("offset")
    return view_memory(operands[0], offset, call.exprs("sizes"), call.exprs("strides"))


def alloc(call: Call, arena: Array) -> Array:
    """`kernel.alloc`: the elements, 1-d, of a part of the arena; a launch gives them their shape.

    Args:
        call: the op.
        arena: bytes of the temporaries of this run.
    """
    (offset,), (length,) = call.exprs("offset"), call.exprs("bytes")
    if offset < 0 or length < 0 or offset + length > arena.size:
        raise InvalidModuleError(f"bytes {offset} to {offset + length} are not in the arena, which has {arena.size}")
    dtype = get_dtype(call.result_type())
    return arena[offset : offset + length // dtype.itemsize * dtype.itemsize].view(dtype)
