"""Reads and writes at indices. Indices that the user computes are checked as eager does, wrapped only where it wraps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional, Union

import torch

from ..builder import FLOATS, Builder, Scalar, Value
from ..sizes import Size, normalise, product
from . import Unsupported, lowers
from .elementwise import operand
from .shape import wrap

aten = torch.ops.aten

_IN_SELF = "IndexError: index out of range in self"
_BEYOND = "IndexError: out of range: tried to access an element beyond the end"


def _bounds(dim: int, size: Size, kind: str = "IndexError") -> str:
    """Eager's message, but for the index, which differs from call to call."""
    where = f" with size {size}" if isinstance(size, int) else ""
    return f"{kind}: index is out of bounds for dimension {dim}{where}"


def checked(b: Builder, index: Value, size: Size, message: str, wraps: bool = False) -> Value:
    """The index as i64: checked to be in 0..size-1 (or, if it wraps, -size..size-1), then made so in any case.

    What is known to hold is not checked.
    """
    index = b.convert(index, torch.int64)
    if b.bounds.within(index.bounds, 0, normalise(size - 1)):
        return index
    limit = b.full(b.size(size), index.sizes, torch.int64)
    lowest = b.unary("neg", limit) if wraps else b.full(0, index.sizes, torch.int64)
    b.check(b.binary("and", b.compare("ge", index, lowest), b.compare("lt", index, limit)), message)
    if wraps:
        index = wrapped(b, index, limit)
    last = b.full(b.size(normalise(size - 1)), index.sizes, torch.int64)
    return b.with_scalar("max", b.binary("min", index, last), 0)


def wrapped(b: Builder, index: Value, limit: Value) -> Value:
    """Negative indices counted from the end."""
    if index.bounds is not None and b.bounds.is_nonnegative(index.bounds[0]):
        return index
    return b.select(b.with_scalar("lt", index, 0), b.binary("add", index, limit), index)


def broadcast_sizes(lists: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
    """The common shape of broadcast operands; known sizes of 1 yield to others."""
    rank = max(len(sizes) for sizes in lists)
    result: list[Size] = [1] * rank
    for sizes in lists:
        for k, size in enumerate(sizes):
            at = rank - len(sizes) + k
            if result[at] == 1:
                result[at] = size
    return tuple(result)


# ---- reads


@lowers(aten.embedding.default)
def embedding(
    b: Builder, weight: Value, indices: Value, padding_idx: Size = -1, scale_grad_by_freq=False, sparse=False
) -> Value:
    return b.gather(weight, [checked(b, indices, weight.sizes[0], _IN_SELF)], [0])


@lowers(aten.index_select.default)
def index_select(b: Builder, x: Value, dim: int, index: Value) -> Value:
    if x.rank == 0:
        return x
    dim = wrap(dim, x.rank)
    index = b.reshape(index, [product(index.sizes)])
    result = b.gather(x, [checked(b, index, x.sizes[dim], _IN_SELF)], [dim])
    return b.transpose(result, [*range(1, dim + 1), 0, *range(dim + 1, x.rank)])


def _along(b: Builder, sizes: Sequence[Size], dim: int, index: Value) -> tuple[list[Value], list[int]]:
    """Indices of every dimension: the given one along dim, the position itself along the others."""
    return [index if k == dim else b.iota(index.sizes, k) for k in range(len(sizes))], list(range(len(sizes)))


@lowers(aten.gather.default)
def gather(b: Builder, x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    if x.rank == 0:
        x, dim = b.reshape(x, [1]), 0
        index_1d = b.reshape(index, [product(index.sizes)])
        return b.reshape(gather(b, x, 0, index_1d), b.out.sizes)
    dim = wrap(dim, x.rank)
    if index.rank == 0:
        index = b.reshape(index, [1])
    index = checked(b, index, x.sizes[dim], _bounds(dim, x.sizes[dim], "RuntimeError"))
    return b.reshape(b.gather(x, *_along(b, x.sizes, dim, index)), b.out.sizes)


class _Subscript:
    """The tensors of x[...] as gather and scatter take them.

    Attributes:
        indices, dims: i64 indices of one shape, and the dimensions that they index.
        order: how the gather's result, indices first, is permuted to x[...].
    """

    def __init__(self, b: Builder, x: Value, indices: Sequence[Optional[Value]], check: bool):
        if any(i is not None and i.dtype is torch.bool for i in indices):
            raise Unsupported("a boolean index gives a size that depends on data")
        self.dims = [k for k, index in enumerate(indices) if index is not None]
        given = [index for index in indices if index is not None]
        shape = broadcast_sizes([index.sizes for index in given])
        self.indices = []
        for dim, index in zip(self.dims, given):
            if check:
                index = checked(b, index, x.sizes[dim], _bounds(dim, x.sizes[dim]), wraps=True)
            else:
                index = b.convert(index, torch.int64)
                limit = b.full(b.size(x.sizes[dim]), index.sizes, torch.int64)
                index = wrapped(b, index, limit)
            self.indices.append(b.broadcast(index, shape))
        count = len(shape)
        rank = count + x.rank - len(self.dims)
        adjacent = self.dims == list(range(self.dims[0], self.dims[0] + len(self.dims)))
        first = self.dims[0] if adjacent else 0
        self.order = [*range(count, count + first), *range(count), *range(count + first, rank)]
        self.inverse = [self.order.index(k) for k in range(rank)]


@lowers(aten.index.Tensor)
def index(b: Builder, x: Value, indices: Sequence[Optional[Value]]) -> Value:
    return _index(b, x, indices, True)


@lowers(aten._unsafe_index.Tensor)
def unsafe_index(b: Builder, x: Value, indices: Sequence[Optional[Value]]) -> Value:
    return _index(b, x, indices, False)


def _index(b: Builder, x: Value, indices: Sequence[Optional[Value]], check: bool) -> Value:
    if all(i is None for i in indices):
        return x
    subscript = _Subscript(b, x, indices, check)
    return b.transpose(b.gather(x, subscript.indices, subscript.dims), subscript.order)


@lowers(aten.take.default)
def take(b: Builder, x: Value, index: Value) -> Value:
    size = product(x.sizes)
    return b.gather(b.reshape(x, [size]), [checked(b, index, size, _BEYOND, True)], [0])


# ---- writes


@lowers(aten.index_put.default)
def index_put(
    b: Builder, x: Value, indices: Sequence[Optional[Value]], values: Value, accumulate: bool = False
) -> Value:
    return _index_put(b, x, indices, values, accumulate, True)


@lowers(aten._unsafe_index_put.default)
def unsafe_index_put(
    b: Builder, x: Value, indices: Sequence[Optional[Value]], values: Value, accumulate: bool = False
) -> Value:
    return _index_put(b, x, indices, values, accumulate, False)


def _index_put(b: Builder, x: Value, indices, values: Value, accumulate: bool, check: bool) -> Value:
    values = b.convert(values, x.dtype)
    if len(indices) == 1 and indices[0].dtype is torch.bool and all(size == 1 for size in values.sizes):
        mask = b.reshape(indices[0], [*indices[0].sizes, *[1] * (x.rank - indices[0].rank)])
        value = b.broadcast(b.reshape(values, []), x.sizes)
        value = b.binary("add", x, value) if accumulate else value
        return b.select(b.broadcast(mask, x.sizes), value, x)
    subscript = _Subscript(b, x, indices, check)
    rest = [size for k, size in enumerate(x.sizes) if k not in subscript.dims]
    sizes = [*subscript.indices[0].sizes, *rest]
    target = [sizes[k] for k in subscript.order]
    values = b.reshape(values, values.sizes[max(values.rank - len(target), 0) :])
    updates = b.transpose(b.broadcast(values, target), subscript.inverse)
    return _scatter(b, x, updates, subscript.indices, subscript.dims, "sum" if accumulate else "assign")


def _scatter(b: Builder, x: Value, updates: Value, indices: Sequence[Value], dims: Sequence[int], mode: str) -> Value:
    if x.dtype is torch.bool and mode != "assign":
        mode = {"sum": "max", "prod": "min"}.get(mode, mode)
        wide = b.scatter(b.convert(x, torch.uint8), b.convert(updates, torch.uint8), indices, dims, mode)
        return b.convert(wide, torch.bool)
    return b.scatter(x, updates, indices, dims, mode)


_MODES = {"sum": "sum", "add": "sum", "prod": "prod", "multiply": "prod", "amax": "max", "amin": "min", "mean": "sum"}


def _scatter_along(b: Builder, x: Value, dim: int, index: Value, source: Union[Value, Scalar], mode: str) -> Value:
    if x.rank == 0:
        flat = _scatter_along(b, b.reshape(x, [1]), 0, b.reshape(index, [1]), _reshaped(b, source, [1]), mode)
        return b.reshape(flat, [])
    dim = wrap(dim, x.rank)
    if index.rank == 0:
        index, source = b.reshape(index, [1]), _reshaped(b, source, [1])
    index = checked(b, index, x.sizes[dim], _bounds(dim, x.sizes[dim], "RuntimeError"))
    if isinstance(source, Value) and source.rank == index.rank:
        source = b.slice(source, [0] * index.rank, index.sizes, [1] * index.rank, index.sizes)
    updates = operand(b, source, x.dtype, index.sizes)
    return _scatter(b, x, updates, *_along(b, x.sizes, dim, index), mode)


def _reshaped(b: Builder, x: Union[Value, Scalar], sizes: Sequence[Size]) -> Union[Value, Scalar]:
    return b.reshape(x, sizes) if isinstance(x, Value) else x


@lowers(aten.scatter.src, aten.scatter.value)
def scatter(b: Builder, x: Value, dim: int, index: Value, source: Union[Value, Scalar]) -> Value:
    return _scatter_along(b, x, dim, index, source, "assign")


@lowers(aten.scatter.reduce, aten.scatter.value_reduce)
def scatter_with(b: Builder, x: Value, dim: int, index: Value, source: Union[Value, Scalar], *, reduce: str) -> Value:
    return _scatter_along(b, x, dim, index, source, _MODES[reduce])


@lowers(aten.scatter_add.default)
def scatter_add(b: Builder, x: Value, dim: int, index: Value, source: Value) -> Value:
    return _scatter_along(b, x, dim, index, source, "sum")


@lowers(aten.scatter_reduce.two)
def scatter_reduce(
    b: Builder, x: Value, dim: int, index: Value, source: Value, reduce: str, *, include_self: bool = True
) -> Value:
    start = x
    if not include_self:
        # what is written to starts at the identity
        start = _scatter_along(b, x, dim, index, _identity(reduce, x.dtype), "assign")
    result = _scatter_along(b, start, dim, index, source, _MODES[reduce])
    if reduce != "mean":
        return result
    ones = b.full(1 if include_self else 0, x.sizes, x.dtype)
    count = _scatter_along(b, ones, dim, index, 1, "sum")
    count = b.with_scalar("max", count, 1)
    if x.dtype in FLOATS:
        return b.binary("div", result, count)
    quotient, remainder = b.binary("div", result, count), b.binary("rem", result, count)
    return b.select(b.with_scalar("lt", remainder, 0), b.with_scalar("sub", quotient, 1), quotient)


@lowers(aten.index_reduce.default)
def index_reduce(
    b: Builder, x: Value, dim: int, index: Value, source: Value, reduce: str, *, include_self: bool = True
) -> Value:
    """A scatter_reduce whose index is the same for all other dimensions."""
    if x.rank == 0:
        raise Unsupported("index_reduce of a number")
    dim = wrap(dim, x.rank)
    whole = b.broadcast_in_dim(index, source.sizes, [dim])
    return scatter_reduce(b, x, dim, whole, source, reduce, include_self=include_self)


@lowers(aten.put.default)
def put(b: Builder, x: Value, index: Value, source: Value, accumulate: bool = False) -> Value:
    size, count = product(x.sizes), product(index.sizes)
    places = checked(b, b.reshape(index, [count]), size, _BEYOND, True)
    flat = b.reshape(x, [size])
    result = _scatter(b, flat, b.reshape(source, [count]), [places], [0], "sum" if accumulate else "assign")
    return b.reshape(result, x.sizes)


@lowers(aten.masked_scatter.default)
def masked_scatter(b: Builder, x: Value, mask: Value, source: Value) -> Value:
    """The elements where the mask holds are replaced by the source's, in order."""
    mask, x = b.broadcast(mask, b.out.sizes), b.broadcast(x, b.out.sizes)
    total, available = product(x.sizes), product(source.sizes)
    if available == 0:
        raise Unsupported("masked_scatter from an empty tensor")
    chosen = b.convert(b.reshape(mask, [total]), torch.int64)
    if total == 0:
        return x
    place = b.with_scalar("sub", b.scan(chosen, "sum", 0), 1)
    last = b.full(b.size(available - 1), place.sizes, torch.int64)
    b.check(b.compare("le", place, last), "RuntimeError: Number of elements of source < number of ones in mask")
    place = b.with_scalar("max", b.binary("min", place, last), 0)
    values = b.gather(b.reshape(b.convert(source, x.dtype), [available]), [place], [0])
    return b.select(mask, b.reshape(values, x.sizes), x)


def _identity(reduce: str, dtype: torch.dtype) -> Scalar:
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if dtype is torch.bool:
        return reduce == "amin"
    if dtype in FLOATS:
        return -float("inf") if reduce == "amax" else float("inf")
    return torch.iinfo(dtype).min if reduce == "amax" else torch.iinfo(dtype).max
