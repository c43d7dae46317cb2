"""ATen ops that rearrange elements: views, joins, cuts and pads. Views are values here; aliasing is the caller's affair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Optional, Union

import torch

from ..builder import Builder, Scalar, Value
from ..sizes import Size, normalise, product
from . import Unsupported, lowers
from .elementwise import filler, operand

aten = torch.ops.aten


def wrap(dim: int, rank: int) -> int:
    """A dimension counted from the end made one from the start; a 0-d tensor has dimension 0 and -1."""
    return dim % max(rank, 1)


def wrap_all(dims: Union[int, Sequence[int], None], rank: int) -> list[int]:
    """Dimensions of a reduction: none given means all."""
    if dims is None or (not isinstance(dims, int) and len(dims) == 0):
        return list(range(rank))
    return sorted({wrap(d, rank) for d in ([dims] if isinstance(dims, int) else dims)}) if rank else []


@lowers(aten.view.default, aten._unsafe_view.default, aten.reshape.default, aten._reshape_copy.default)
def view(b: Builder, x: Value, size: Sequence[Size]) -> Value:
    return b.reshape(x, b.out.sizes)


@lowers(aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims, aten.unsqueeze.default, aten.view_as.default)
def reshaped(b: Builder, x: Value, *args: Any) -> Value:
    return b.reshape(x, b.out.sizes)


@lowers(aten.flatten.using_ints, aten.unflatten.int)
def flatten(b: Builder, x: Value, *args: Any, **kwargs: Any) -> Value:
    return b.reshape(x, b.out.sizes)


@lowers(aten.expand.default)
def expand(b: Builder, x: Value, size: Sequence[Size], implicit: bool = False) -> Value:
    return b.broadcast(x, b.out.sizes)


@lowers(aten.permute.default)
def permute(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    return b.transpose(x, [wrap(d, x.rank) for d in dims])


@lowers(aten.transpose.int)
def transpose(b: Builder, x: Value, dim0: int, dim1: int) -> Value:
    order = list(range(x.rank))
    if x.rank:
        dim0, dim1 = wrap(dim0, x.rank), wrap(dim1, x.rank)
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return b.transpose(x, order)


@lowers(aten.t.default)
def t(b: Builder, x: Value) -> Value:
    return b.transpose(x, list(range(x.rank))[::-1])


def _clamped_bound(bound: Optional[Size], size: Size, default: Size) -> Size:
    if bound is None:
        return default
    if isinstance(bound, int) and isinstance(size, int):
        return min(max(bound + size if bound < 0 else bound, 0), size)
    return bound


@lowers(aten.slice.Tensor)
def slice(
    b: Builder, x: Value, dim: int = 0, start: Optional[Size] = None, end: Optional[Size] = None, step: int = 1
) -> Value:
    dim = wrap(dim, x.rank)
    start, limit = slice_bounds(b, x, dim, start, end, step, b.out.sizes[dim])
    return b.slice_dim(x, dim, start, limit, step)


def slice_bounds(b: Builder, x: Value, dim: int, start, end, step: int, result: Size) -> tuple[Size, Size]:
    """Start and limit within the dimension, from Python's slice bounds and the number of elements that torch says."""
    size = x.sizes[dim]
    if not isinstance(step, int):
        raise Unsupported("the step of a slice is not constant")
    if all(isinstance(v, int) or v is None for v in (start, end, size)):
        start = _clamped_bound(start, size, 0)
        return start, max(start, _clamped_bound(end, size, size))
    if result == 0:
        return 0, 0
    if start is None or (isinstance(start, int) and start == 0):
        start = 0
    elif isinstance(start, int) and start < 0:
        start = normalise(size - result) if step == 1 and (end is None or _is_huge(end)) else normalise(size + start)
    elif not isinstance(start, int):
        start = normalise(start)
    if step == 1:
        return start, normalise(start + result)
    if end is None or _is_huge(end):
        return start, size
    return start, normalise(start + (result - 1) * step + 1)


def _is_huge(end: Size) -> bool:
    return isinstance(end, int) and end >= 2**62


@lowers(aten.select.int)
def select(b: Builder, x: Value, dim: int, index: Size) -> Value:
    dim = wrap(dim, x.rank)
    if isinstance(index, int) and index < 0:
        index = normalise(x.sizes[dim] + index)
    piece = b.slice_dim(x, dim, index, normalise(index + 1))
    return b.reshape(piece, b.out.sizes)


@lowers(aten.narrow.default)
def narrow(b: Builder, x: Value, dim: int, start: Size, length: Size) -> Value:
    dim = wrap(dim, x.rank)
    if isinstance(start, int) and start < 0:
        start = normalise(x.sizes[dim] + start)
    return b.slice_dim(x, dim, start, normalise(start + length))


def _pieces(b: Builder, x: Value, dim: int) -> tuple[Value, ...]:
    """The value cut along dim into pieces of the sizes that the call returns."""
    dim, start, pieces = wrap(dim, x.rank), 0, []
    for output in b.outputs:
        limit = normalise(start + output.sizes[dim])
        pieces.append(b.slice_dim(x, dim, start, limit))
        start = limit
    return tuple(pieces)


@lowers(aten.split.Tensor, aten.split_with_sizes.default, aten.split.sizes, aten.chunk.default)
def split(b: Builder, x: Value, sizes: Any, dim: int = 0) -> tuple[Value, ...]:
    return _pieces(b, x, dim)


@lowers(aten.unbind.int)
def unbind(b: Builder, x: Value, dim: int = 0) -> tuple[Value, ...]:
    dim = wrap(dim, x.rank)
    return tuple(b.reshape(b.slice_dim(x, dim, i, i + 1), o.sizes) for i, o in enumerate(b.outputs))


@lowers(aten.cat.default)
def cat(b: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    rank = len(b.out.sizes)
    dim = wrap(dim, rank)
    # 1-d empty tensors are skipped whatever the rank of the others
    tensors = [x for x in tensors if not (x.sizes == (0,) and rank != 1)]
    values = [b.convert(x, b.out.dtype) for x in tensors]
    return b.concatenate([v for v in values if v.sizes[dim] != 0] or values[:1], dim)


@lowers(aten.stack.default)
def stack(b: Builder, tensors: Sequence[Value], dim: int = 0) -> Value:
    dim = wrap(dim, len(b.out.sizes))
    sizes = [1 if k == dim else size for k, size in enumerate(b.out.sizes)]
    return b.concatenate([b.reshape(b.convert(x, b.out.dtype), sizes) for x in tensors], dim)


@lowers(aten.repeat.default)
def repeat(b: Builder, x: Value, repeats: Sequence[Size]) -> Value:
    x = b.reshape(x, [1] * (len(repeats) - x.rank) + list(x.sizes))
    wide, inner = [], []
    for count, size in zip(repeats, x.sizes):
        wide += [count, size]
        inner += [1, size]
    return b.reshape(b.broadcast(b.reshape(x, inner), wide), b.out.sizes)


@lowers(aten.flip.default)
def flip(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    return b.reverse(x, wrap_all(dims, x.rank) if len(dims) else [])


@lowers(aten.roll.default)
def roll(b: Builder, x: Value, shifts: Sequence[Size], dims: Sequence[int] = ()) -> Value:
    if not len(dims):
        flat = b.reshape(x, [_numel(x)])
        return b.reshape(roll(b, flat, shifts, [0]), x.sizes)
    for shift, dim in zip(shifts, dims):
        dim = wrap(dim, x.rank)
        size = x.sizes[dim]
        if not isinstance(shift, int):
            raise Unsupported("roll by a size")
        if not isinstance(size, int):
            raise Unsupported("roll of a dimension of unknown size")
        if size == 0 or shift % size == 0:
            continue
        cut = size - shift % size
        x = b.concatenate([b.slice_dim(x, dim, cut, size), b.slice_dim(x, dim, 0, cut)], dim)
    return x


def _numel(x: Value) -> Size:
    return product(x.sizes)


@lowers(aten.constant_pad_nd.default)
def constant_pad_nd(b: Builder, x: Value, pad: Sequence[Size], value: Scalar = 0) -> Value:
    low, high = [0] * x.rank, [0] * x.rank
    for i in range(len(pad) // 2):
        dim = x.rank - 1 - i
        for amounts, amount in ((low, pad[2 * i]), (high, pad[2 * i + 1])):
            amounts[dim] = amount
    # negative amounts cut
    starts = [-a if isinstance(a, int) and a < 0 else 0 for a in low]
    limits = [size + a if isinstance(a, int) and a < 0 else size for size, a in zip(x.sizes, high)]
    x = b.slice(x, starts, [normalise(limit) for limit in limits], [1] * x.rank)
    positive = [[0 if isinstance(a, int) and a < 0 else a for a in amounts] for amounts in (low, high)]
    return b.pad(x, value, *positive)


@lowers(aten.diagonal.default)
def diagonal(b: Builder, x: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    dim1, dim2 = wrap(dim1, x.rank), wrap(dim2, x.rank)
    count = b.out.sizes[-1]
    positions = b.iota([count], 0)
    rows = b.with_scalar("add", positions, -offset) if offset < 0 else positions
    columns = b.with_scalar("add", positions, offset) if offset > 0 else positions
    result = b.gather(x, [rows, columns], [dim1, dim2]) if dim1 < dim2 else b.gather(x, [columns, rows], [dim2, dim1])
    return b.transpose(result, [*range(1, result.rank), 0])


@lowers(aten.unfold.default)
def unfold(b: Builder, x: Value, dimension: int, size: int, step: int) -> Value:
    if x.rank == 0:
        return b.reshape(x, b.out.sizes)
    dim = wrap(dimension, x.rank)
    windows = b.out.sizes[dim]
    first = b.with_scalar("mul", b.iota([windows, size], 0), step)
    result = b.gather(x, [b.binary("add", first, b.iota([windows, size], 1))], [dim])
    order = list(range(2, x.rank + 1))
    return b.transpose(result, [*order[:dim], 0, *order[dim:], 1])


def _contiguous_strides(sizes: Sequence[Size]) -> list[Size]:
    strides: list[Size] = []
    step: Size = 1
    for size in reversed(sizes):
        strides.insert(0, step)
        step = normalise(step * size)
    return strides


@lowers(aten.as_strided.default)
def as_strided(
    b: Builder, x: Value, size: Sequence[Size], stride: Sequence[Size], storage_offset: Optional[Size] = None
) -> Value:
    """The operand is contiguous and fills its storage as far as it is read: `lamina.frontend.storage` sees to that."""
    if storage_offset in (None, 0) and list(x.sizes) == list(size) and list(stride) == _contiguous_strides(size):
        return x
    flat = b.reshape(x, [_numel(x)])
    offsets = b.full(0, size, torch.int64)
    for dim, step in enumerate(stride):
        if not isinstance(step, int):
            step = b.size(step)
        offsets = b.binary("add", offsets, b.binary("mul", b.iota(size, dim), b.full(step, size, torch.int64)))
    if storage_offset not in (None, 0):
        offsets = b.binary("add", offsets, b.full(b.size(storage_offset), size, torch.int64))
    return b.gather(flat, [offsets], [0])


@lowers(aten.select_scatter.default)
def select_scatter(b: Builder, x: Value, src: Value, dim: int, index: Size) -> Value:
    dim = wrap(dim, x.rank)
    if isinstance(index, int) and index < 0:
        index = normalise(x.sizes[dim] + index)
    piece = b.reshape(b.convert(src, x.dtype), [1 if k == dim else size for k, size in enumerate(x.sizes)])
    return _replace(b, x, piece, dim, index, normalise(index + 1))


def _replace(b: Builder, x: Value, piece: Value, dim: int, start: Size, limit: Size) -> Value:
    parts = [b.slice_dim(x, dim, 0, start), piece, b.slice_dim(x, dim, limit, x.sizes[dim])]
    parts = [part for part in parts if part.sizes[dim] != 0]
    return b.concatenate(parts, dim) if parts else x


@lowers(aten.slice_scatter.default)
def slice_scatter(b: Builder, x: Value, src: Value, dim: int = 0, start=None, end=None, step: int = 1) -> Value:
    dim = wrap(dim, x.rank)
    src = b.convert(src, x.dtype)
    if src.sizes == x.sizes and step == 1:
        return src
    start, limit = slice_bounds(b, x, dim, start, end, step, src.sizes[dim])
    if step == 1:
        return _replace(b, x, src, dim, start, limit)
    position = b.iota([src.sizes[dim]], 0)
    position = b.with_scalar("mul", position, step)
    position = b.binary("add", position, b.full(b.size(start), position.sizes, torch.int64))
    moved = b.transpose(src, [dim, *(k for k in range(x.rank) if k != dim)])
    return b.scatter(x, moved, [position], [dim], "assign")


@lowers(aten.diagonal_scatter.default)
def diagonal_scatter(b: Builder, x: Value, src: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    dim1, dim2 = wrap(dim1, x.rank), wrap(dim2, x.rank)
    src = b.convert(src, x.dtype)
    positions = b.iota([src.sizes[-1]], 0)
    rows = b.with_scalar("add", positions, -offset) if offset < 0 else positions
    columns = b.with_scalar("add", positions, offset) if offset > 0 else positions
    updates = b.transpose(src, [src.rank - 1, *range(src.rank - 1)])
    if dim1 < dim2:
        return b.scatter(x, updates, [rows, columns], [dim1, dim2], "assign")
    return b.scatter(x, updates, [columns, rows], [dim2, dim1], "assign")


def _triangle(b: Builder, x: Value, diagonal: Size, comparison: str) -> Value:
    distance = b.binary("sub", b.iota(x.sizes, x.rank - 1), b.iota(x.sizes, x.rank - 2))
    kept = b.compare(comparison, distance, operand(b, diagonal, torch.int64))
    return b.select(kept, x, b.full(0, x.sizes, x.dtype))


@lowers(aten.triu.default)
def triu(b: Builder, x: Value, diagonal: Size = 0) -> Value:
    return _triangle(b, x, diagonal, "ge")


@lowers(aten.tril.default)
def tril(b: Builder, x: Value, diagonal: Size = 0) -> Value:
    return _triangle(b, x, diagonal, "le")


@lowers(aten.expand_as.default)
def expand_as(b: Builder, x: Value, other: Value) -> Value:
    return b.broadcast(x, b.out.sizes)


@lowers(aten.fill.Scalar, aten.fill.Tensor)
def fill(b: Builder, x: Value, value: Any) -> Value:
    return filler(b, value, b.out.dtype)
