"""Matrix products, linear layers and convolutions: each one prim op, with an f32 result for f16 and bf16 operands.

Numbers: eager's f16 and bf16 kernels accumulate in f32, add the bias there and round once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import torch

from ..builder import FLOATS, Builder, Scalar, Value
from ..sizes import Size, product
from . import Unsupported, lowers
from .elementwise import finish

aten = torch.ops.aten


def _dot_last(b: Builder, x: Value, y: Value, y_contract: int) -> Value:
    """Contraction of the last dimension of x. A reshape that merged x's leading dimensions is undone first, so that
    the product has several free dimensions and the reshape moves to its result, where the next one cancels it."""
    base = x.base
    if base is not None and x.rank == 2 and base.rank > 2 and base.sizes[-1] == x.sizes[-1]:
        y_free = [size for k, size in enumerate(y.sizes) if k != y_contract]
        wide = b.dot(base, y, [], [], [base.rank - 1], [y_contract])
        return b.reshape(wide, [x.sizes[0], *y_free])
    return b.dot(x, y, [], [], [x.rank - 1], [y_contract])


def _add_bias(b: Builder, x: Value, bias: Optional[Value]) -> Value:
    """x + bias in x's dtype (broadcast), below a reshape of x if there is one."""
    if bias is None:
        return x
    bias = b.convert(bias, x.dtype)
    base = x.base
    if base is not None and base.rank > 2 and bias.rank == 1 and base.sizes[-1] == bias.sizes[0]:
        return b.reshape(b.binary("add", base, b.broadcast(bias, base.sizes)), x.sizes)
    return b.binary("add", x, b.broadcast(bias, x.sizes))


def round_to(b: Builder, x: Value, dtype: torch.dtype) -> Value:
    """Conversion that stays below a reshape, so that reshapes meet and cancel."""
    if x.base is not None and x.dtype != dtype:
        return b.reshape(b.convert(x.base, dtype), x.sizes)
    return b.convert(x, dtype)


@lowers(aten.linear.default)
def linear(b: Builder, x: Value, weight: Value, bias: Optional[Value] = None) -> Value:
    product_ = b.dot(x, weight, [], [], [x.rank - 1], [weight.rank - 1])
    return finish(b, _add_bias(b, product_, bias))


@lowers(aten.mm.default)
def mm(b: Builder, x: Value, y: Value) -> Value:
    return round_to(b, _dot_last(b, x, y, 0), b.out.dtype)


@lowers(aten.addmm.default)
def addmm(b: Builder, bias: Value, x: Value, y: Value, beta: Scalar = 1, alpha: Scalar = 1) -> Value:
    result = _dot_last(b, x, y, 0)
    return round_to(b, _scaled_add(b, bias, result, beta, alpha), b.out.dtype)


def _scaled_add(b: Builder, bias: Value, result: Value, beta: Scalar, alpha: Scalar) -> Value:
    if alpha != 1:
        result = b.with_scalar("mul", result, alpha)
    if beta == 0:  # eager ignores the addend then, NaN or not
        return result
    if beta != 1:
        bias = b.convert(bias, result.dtype)
        bias = b.with_scalar("mul", bias, beta)
    return _add_bias(b, result, bias)


@lowers(aten.bmm.default)
def bmm(b: Builder, x: Value, y: Value) -> Value:
    """The batch dimensions that a reshape merged in both operands are batch dimensions of the product."""
    u, v = x.base, y.base
    if u is not None and v is not None and u.rank == v.rank > 3 and u.sizes[:-2] == v.sizes[:-2]:
        if u.sizes[-2:] == x.sizes[-2:] and v.sizes[-2:] == y.sizes[-2:]:
            batch = list(range(u.rank - 2))
            wide = b.dot(u, v, batch, batch, [u.rank - 1], [u.rank - 2])
            return round_to(b, b.reshape(wide, b.out.sizes), b.out.dtype)
    return finish(b, b.dot(x, y, [0], [0], [2], [1]))


@lowers(aten.baddbmm.default)
def baddbmm(b: Builder, bias: Value, x: Value, y: Value, beta: Scalar = 1, alpha: Scalar = 1) -> Value:
    return finish(b, _scaled_add(b, bias, b.dot(x, y, [0], [0], [2], [1]), beta, alpha))


@lowers(aten.mv.default)
def mv(b: Builder, x: Value, y: Value) -> Value:
    return finish(b, b.dot(x, y, [], [], [1], [0]))


@lowers(aten.addmv.default)
def addmv(b: Builder, bias: Value, x: Value, y: Value, beta: Scalar = 1, alpha: Scalar = 1) -> Value:
    return finish(b, _scaled_add(b, bias, b.dot(x, y, [], [], [1], [0]), beta, alpha))


@lowers(aten.dot.default, aten.vdot.default)
def dot(b: Builder, x: Value, y: Value) -> Value:
    return finish(b, b.dot(x, y, [], [], [0], [0]))


@lowers(aten.matmul.default)
def matmul(b: Builder, x: Value, y: Value) -> Value:
    if y.rank == 1:
        return finish(b, b.dot(x, y, [], [], [x.rank - 1], [0]))
    if y.rank == 2:
        return finish(b, b.dot(x, y, [], [], [x.rank - 1], [0]))
    if x.rank == 1:
        sizes = [*y.sizes[:-2], x.sizes[0]]
        x = b.broadcast(x, sizes)
        batch = list(range(y.rank - 2))
        return finish(b, b.dot(x, y, batch, batch, [x.rank - 1], [y.rank - 2]))
    batch_sizes = list(b.out.sizes[:-2])
    batch = list(range(len(batch_sizes)))
    x = b.broadcast(x, batch_sizes + list(x.sizes[-2:]))
    y = b.broadcast(y, batch_sizes + list(y.sizes[-2:]))
    rank = len(batch) + 2
    return finish(b, b.dot(x, y, batch, batch, [rank - 1], [rank - 2]))


# ---- convolution


def _per_dim(values: Sequence[int], count: int) -> list[int]:
    return [values[0]] * count if len(values) == 1 else list(values)


@lowers(aten.convolution.default)
def convolution(
    b: Builder,
    x: Value,
    weight: Value,
    bias: Optional[Value],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Value:
    spatial = weight.rank - 2
    stride, padding, dilation, output_padding = (_per_dim(v, spatial) for v in (stride, padding, dilation, output_padding))
    unbatched = x.rank == weight.rank - 1
    if unbatched:
        x = b.reshape(x, [1, *x.sizes])
    if x.dtype not in FLOATS:
        raise Unsupported(f"convolution of {x.dtype}")
    ones = [1] * spatial
    if transposed:
        result = _transposed(b, x, weight, stride, padding, dilation, output_padding, groups)
    else:
        result = b.convolution(x, weight, stride, padding, padding, ones, dilation, groups)
    if bias is not None:
        bias = b.reshape(b.convert(bias, result.dtype), [bias.sizes[0]] + ones)
        result = b.binary("add", result, b.broadcast(bias, result.sizes))
    result = finish(b, result)
    return b.reshape(result, b.out.sizes) if unbatched else result


def swap_channels(b: Builder, weight: Value, groups: int) -> Value:
    """A weight of I, O/groups, spatial as O, I/groups, spatial."""
    i, o, *spatial = weight.sizes
    grouped = b.reshape(weight, [groups, i // groups, o, *spatial])
    grouped = b.transpose(grouped, [0, 2, 1, *range(3, grouped.rank)])
    return b.reshape(grouped, [groups * o, i // groups, *spatial])


def _transposed(b: Builder, x: Value, weight: Value, stride, padding, dilation, output_padding, groups: int) -> Value:
    """The gradient of a convolution: the input dilated by the stride, the kernel reversed."""
    spatial = weight.rank - 2
    weight = swap_channels(b, b.reverse(weight, list(range(2, weight.rank))), groups)
    reach = [d * (k - 1) for d, k in zip(dilation, weight.sizes[2:])]
    low = [r - p for r, p in zip(reach, padding)]
    high = [r - p + o for r, p, o in zip(reach, padding, output_padding)]
    return b.convolution(x, weight, [1] * spatial, low, high, stride, dilation, groups)
