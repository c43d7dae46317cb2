"""Pooling: windows that are combined, and what divides their sums."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, Optional

import torch

from ..builder import FLOATS, Builder, Value
from ..sizes import Size
from . import Unsupported, lowers
from .elementwise import finish, opmath

aten = torch.ops.aten


def per_dim(values: Sequence[int], count: int) -> list[int]:
    """One value for all dimensions, or one each."""
    values = list(values)
    return values * count if len(values) == 1 else values


def _for_dims(*ops: torch._ops.OpOverload) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function, which takes the number of pooled dimensions first, for the ops of 2 and of 3 of them."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        for count, op in zip((2, 3), ops, strict=True):
            lowers(op)(functools.partial(function, count))
        return function

    return register


class _Windows:
    """Windows over the last `count` dimensions of x, with as many elements after the end as the result's sizes need."""

    def __init__(self, out: Sequence[Size], x: Value, count: int, kernel, stride, padding, dilation, ceil_mode: bool):
        self.count = count
        self.kernel = per_dim(kernel, count)
        self.stride = per_dim(stride, count) if len(stride) else self.kernel
        self.low = per_dim(padding, count)
        self.dilation = per_dim(dilation, count)
        self.high: list[Any] = list(self.low)
        self.lead = x.rank - count
        self.sizes, self.out = x.sizes[self.lead :], tuple(out[self.lead :])
        if ceil_mode:
            for k, (size, pixels) in enumerate(zip(self.sizes, self.out)):
                if not isinstance(size, int) or not isinstance(pixels, int):
                    raise Unsupported("ceil_mode with sizes that are not constant")
                reach = (pixels - 1) * self.stride[k] + (self.kernel[k] - 1) * self.dilation[k] + 1
                self.high[k] = max(reach - size - self.low[k], 0)

    def reduce(self, b: Builder, x: Value, combiner: str) -> Value:
        one, zero = [1] * self.lead, [0] * self.lead
        lists = (one + self.kernel, one + self.stride, one + self.dilation, zero + self.low, zero + self.high)
        result = b.reduce_window(x, combiner, *lists)
        sizes = (*x.sizes[: self.lead], *self.out)
        if all(
            isinstance(a, int) and isinstance(c, int) and a > c for a, c in zip(result.sizes[self.lead :], self.out)
        ):
            return b.slice(result, [0] * x.rank, sizes, [1] * x.rank)
        return result

    def starts(self, b: Builder, dim: int) -> Value:
        """Where each window starts in dimension dim, in elements of x; negative in the padding."""
        position = b.iota([self.out[dim]], 0)
        return b.with_scalar("sub", b.with_scalar("mul", position, self.stride[dim]), self.low[dim])


def _max_pool(b: Builder, x: Value, windows: _Windows) -> tuple[Value, Value]:
    return windows.reduce(b, x, "max"), _arg_windows(b, x, windows)


def _arg_windows(b: Builder, x: Value, w: _Windows) -> Value:
    """The flat index, within the pooled dimensions, of each window's first largest element, or of its last NaN."""
    lowest = -math.inf if x.dtype in FLOATS else torch.iinfo(x.dtype).min
    padded = b.pad(x, lowest, [0] * w.lead + w.low, [0] * w.lead + w.high)
    # windows' elements as dimensions of their own: out..., then kernel...
    shape = [*w.out, *w.kernel]
    indices = []
    for k in range(w.count):
        first = b.with_scalar("mul", b.iota(shape, k), w.stride[k])
        indices.append(b.binary("add", first, b.with_scalar("mul", b.iota(shape, w.count + k), w.dilation[k])))
    read = b.gather(padded, indices, list(range(w.lead, x.rank)))
    total = math.prod(w.kernel)
    read = b.reshape(read, [*w.out, total, *x.sizes[: w.lead]])
    arg = b.arg_reduce(read, "max", w.count)
    if x.dtype in FLOATS:
        number = b.iota(read.sizes, w.count)
        none = b.full(-1, read.sizes, torch.int64)
        last = b.reduce(b.select(b.compare("ne", read, read), number, none), "max", [w.count])
        arg = b.select(b.with_scalar("ge", last, 0), last, arg)
    arg = b.transpose(arg, [*range(w.count, arg.rank), *range(w.count)])
    flat, rest = b.full(0, arg.sizes, torch.int64), arg
    places: dict[int, Value] = {}
    outside = b.full(False, arg.sizes, torch.bool)
    for k in reversed(range(w.count)):
        inner = b.with_scalar("rem", rest, w.kernel[k])
        rest = b.with_scalar("div", rest, w.kernel[k])
        start = b.broadcast_in_dim(w.starts(b, k), arg.sizes, [w.lead + k])
        places[k] = b.binary("add", start, b.with_scalar("mul", inner, w.dilation[k]))
        if w.low[k]:
            outside = b.binary("or", outside, b.with_scalar("lt", places[k], 0))
    step: Size = 1
    for k in reversed(range(w.count)):
        place = places[k]
        if any(w.low):
            # Padding comes first only where no element is above it: the first one is the largest then.
            start = b.broadcast_in_dim(w.starts(b, k), arg.sizes, [w.lead + k])
            period = w.dilation[k]
            inside = b.with_scalar("rem", b.with_scalar("add", b.with_scalar("rem", start, period), period), period)
            inside = b.select(b.with_scalar("lt", start, 0), inside, start)
            place = b.select(outside, inside, place)
        factor = (
            b.full(step, arg.sizes, torch.int64)
            if isinstance(step, int)
            else b.full(b.size(step), arg.sizes, torch.int64)
        )
        flat = b.binary("add", flat, b.binary("mul", place, factor))
        step = step * w.sizes[k]
    return flat


@_for_dims(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def max_pool(
    count: int, b: Builder, x: Value, kernel_size, stride=(), padding=(0,), dilation=(1,), ceil_mode: bool = False
) -> tuple[Value, Value]:
    return _max_pool(b, x, _Windows(b.out.sizes, x, count, kernel_size, stride, padding, dilation, ceil_mode))


def _divisor(b: Builder, w: _Windows, dtype: torch.dtype, count_include_pad: bool, override: Optional[int]) -> Value:
    """The number of elements of each window that count, of shape out... (or 0-d)."""
    if override is not None:
        return b.scalar(override, dtype)
    if not any(w.low) and not any(w.high) or (count_include_pad and w.high == w.low):
        return b.scalar(math.prod(w.kernel), dtype)
    total = b.full(1, w.out, dtype)
    for k in range(w.count):
        start = w.starts(b, k)
        end = b.with_scalar("add", start, w.kernel[k])
        limit = b.full(b.size(w.sizes[k] + w.low[k]), end.sizes, torch.int64)
        end = b.binary("min", end, limit)
        if not count_include_pad:
            start = b.with_scalar("max", start, 0)
            end = b.binary("min", end, b.full(b.size(w.sizes[k]), end.sizes, torch.int64))
        extent = b.convert(b.binary("sub", end, start), dtype)
        total = b.binary("mul", total, b.broadcast_in_dim(extent, w.out, [k]))
    return total


def _avg_pool(b: Builder, x: Value, w: _Windows, count_include_pad: bool, override: Optional[int]) -> Value:
    wide = b.convert(x, opmath(x.dtype))
    total = w.reduce(b, wide, "sum")
    divisor = _divisor(b, w, wide.dtype, count_include_pad, override)
    return finish(b, b.binary("div", total, b.broadcast(divisor, total.sizes)))


@_for_dims(aten.avg_pool2d.default, aten.avg_pool3d.default)
def avg_pool(
    count: int,
    b: Builder,
    x: Value,
    kernel_size,
    stride=(),
    padding=(0,),
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
) -> Value:
    windows = _Windows(b.out.sizes, x, count, kernel_size, stride, padding, (1,), ceil_mode)
    return _avg_pool(b, x, windows, count_include_pad, divisor_override)


class _Adaptive(_Windows):
    """Windows that cut the last `count` dimensions into as many equal parts as the result has elements."""

    def __init__(self, out: Sequence[Size], x: Value, count: int):
        kernel = []
        for size, parts in zip(x.sizes[-count:], out[-count:]):
            if not isinstance(size, int) or not isinstance(parts, int) or parts == 0 or size == 0 or size % parts:
                raise Unsupported("adaptive pooling to a size that does not divide the input's")
            kernel.append(size // parts)
        super().__init__(out, x, count, kernel, kernel, (0,), (1,), False)


@lowers(aten._adaptive_avg_pool3d.default)
def adaptive_avg_pool3d(b: Builder, x: Value, output_size) -> Value:
    return _avg_pool(b, x, _Adaptive(b.out.sizes, x, 3), True, None)


@_for_dims(aten.adaptive_max_pool2d.default, aten.adaptive_max_pool3d.default)
def adaptive_max_pool(count: int, b: Builder, x: Value, output_size) -> tuple[Value, Value]:
    return _max_pool(b, x, _Adaptive(b.out.sizes, x, count))


@lowers(aten.avg_pool2d_backward.default)
def avg_pool2d_backward(
    b: Builder, grad: Value, x: Value, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    """Each element gets the sum of the shares of the windows over it: a convolution with ones of the spread gradient."""
    forward = _Windows(grad.sizes, x, 2, kernel_size, stride, padding, (1,), ceil_mode)
    wide = b.convert(grad, opmath(grad.dtype))
    divisor = _divisor(b, forward, wide.dtype, count_include_pad, divisor_override)
    share = b.binary("div", wide, b.broadcast(divisor, wide.sizes))
    lead: Size = 1
    for size in x.sizes[:-2]:
        lead = lead * size
    share = b.reshape(share, [lead, 1, *grad.sizes[-2:]])
    low = [k - 1 - p for k, p in zip(forward.kernel, forward.low)]
    high = []
    for k in range(2):
        size, out = forward.sizes[k], forward.out[k]
        extent = size - ((out - 1) * forward.stride[k] + 1) - low[k] + forward.kernel[k] - 1
        if not isinstance(extent, int):
            raise Unsupported("the gradient of a pooling with sizes that are not constant")
        high.append(extent)
    ones = b.full(1, [1, 1, *forward.kernel], share.dtype)
    result = b.convolution(share, ones, [1, 1], low, high, forward.stride, [1, 1], 1)
    return finish(b, b.reshape(result, x.sizes))


@lowers(aten._adaptive_avg_pool2d_backward.default)
def adaptive_avg_pool2d_backward(b: Builder, grad: Value, x: Value) -> Value:
    """Each element of a part gets the part's gradient, divided by the number of its elements."""
    windows = _Adaptive(grad.sizes, x, 2)
    wide = b.convert(grad, opmath(grad.dtype))
    share = b.with_scalar("div", wide, math.prod(windows.kernel))
    lead, (rows, columns) = grad.sizes[:-2], grad.sizes[-2:]
    sizes = [*lead, rows, windows.kernel[0], columns, windows.kernel[1]]
    spread = b.broadcast_in_dim(share, sizes, [*range(len(lead) + 1), len(lead) + 2])
    return finish(b, b.reshape(spread, x.sizes))
