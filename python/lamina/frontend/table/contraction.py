"""Matrix products, linear layers and convolutions: each one prim op, with an f32 result for f16 and bf16 operands.

Numbers: eager's f16 and bf16 kernels accumulate in f32, add the bias there and round once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional

import torch

from ..builder import FLOATS, Builder, Scalar, Value
from ..sizes import Size
from . import Unsupported, lowers
from .elementwise import finish, opmath
from .pooling import per_dim
from .reduction import spread

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


@lowers(aten.addbmm.default)
def addbmm(b: Builder, bias: Value, x: Value, y: Value, beta: Scalar = 1, alpha: Scalar = 1) -> Value:
    return finish(b, _scaled_add(b, bias, b.dot(x, y, [], [], [0, 2], [0, 1]), beta, alpha))


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
    stride, padding, dilation, output_padding = (
        per_dim(v, spatial) for v in (stride, padding, dilation, output_padding)
    )
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


def _weight_gradient(b: Builder, x: Value, grad: Value, kernel, stride, padding, dilation, groups: int) -> Value:
    """d loss / d weight [O, C/groups, kernel...] of a convolution of x [N, C, ...] with result gradient grad [N, O, ...]:
    a convolution of x with grad, in which the batch is what is summed over."""
    n, c, *sizes = x.sizes
    _, o, *outs = grad.sizes
    spatial = len(sizes)
    rest = range(3, 3 + spatial)
    lhs = b.reshape(x, [n, groups, c // groups, *sizes])
    lhs = b.reshape(b.transpose(lhs, [2, 1, 0, *rest]), [c // groups, groups * n, *sizes])
    rhs = b.transpose(grad, [1, 0, *range(2, 2 + spatial)])
    high = [
        (k - 1) * d + (out - 1) * s + 1 - size - p
        for k, d, out, s, size, p in zip(kernel, dilation, outs, stride, sizes, padding)
    ]
    if not all(isinstance(h, int) for h in (n, *high)):
        raise Unsupported("the gradient of a convolution with sizes that are not constant")
    result = b.convolution(lhs, rhs, dilation, padding, high, [1] * spatial, stride, groups)
    return b.transpose(result, [1, 0, *range(2, 2 + spatial)])


@lowers(aten.convolution_backward.default)
def convolution_backward(
    b: Builder,
    grad: Value,
    x: Value,
    weight: Value,
    bias_sizes: Optional[Sequence[int]],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
):
    spatial = weight.rank - 2
    stride, padding, dilation = (per_dim(v, spatial) for v in (stride, padding, dilation))
    if x.rank != weight.rank:
        raise Unsupported("the gradient of a convolution without a batch")
    kernel = weight.sizes[2:]
    results: list[Any] = [None, None, None]
    if output_mask[0]:
        if transposed:
            value = b.convolution(grad, weight, stride, padding, padding, [1] * spatial, dilation, groups)
        else:
            reach = [
                (o - 1) * s - 2 * p + d * (k - 1) + 1
                for o, s, p, d, k in zip(grad.sizes[2:], stride, padding, dilation, kernel)
            ]
            extra = [size - r for size, r in zip(x.sizes[2:], reach)]
            if not all(isinstance(e, int) for e in extra):
                raise Unsupported("the gradient of a convolution with sizes that are not constant")
            value = _transposed(b, grad, weight, stride, padding, dilation, extra, groups)
        results[0] = b.convert(value, x.dtype)
    if output_mask[1]:
        pair = (grad, x) if transposed else (x, grad)
        results[1] = b.convert(_weight_gradient(b, *pair, kernel, stride, padding, dilation, groups), weight.dtype)
    if output_mask[2]:
        results[2] = b.reduce(grad, "sum", [0, *range(2, grad.rank)])
    return tuple(results)


# ---- attention


def _scores(
    b: Builder, query: Value, key: Value, mask: Optional[Value], is_causal: bool, scale: Optional[float], batch
) -> tuple[Value, float]:
    """query . key * scale + mask, in the accumulation dtype, and the scale; operands as in _Heads."""
    rank = len(batch)
    scores = b.dot(query, key, batch, batch, [rank + 2], [rank + 1])
    size = query.sizes[-1]
    if scale is None:
        if not isinstance(size, int):
            raise Unsupported("attention with a head size that is not constant")
        scale = 1.0 / math.sqrt(size)
    scores = b.with_scalar("mul", scores, scale)
    if is_causal:
        # aligned at the top left, as ATen does
        last = scores.rank - 1
        kept = b.compare("ge", b.iota(scores.sizes, last - 1), b.iota(scores.sizes, last))
        return b.select(kept, scores, b.full(-math.inf, scores.sizes, scores.dtype)), scale
    if mask is not None:
        if mask.dtype is torch.bool:
            mask = b.broadcast(mask, scores.sizes)
            return b.select(mask, scores, b.full(-math.inf, scores.sizes, scores.dtype)), scale
        scores = b.binary("add", scores, b.broadcast(b.convert(mask, scores.dtype), scores.sizes))
    return scores, scale


class _Heads:
    """Operands of attention with common batch dimensions. Query heads may be a multiple of key heads: each key head then
    serves a group of them, which is a dimension of its own (of size 1 otherwise).

    Attributes:
        query: [batch..., group, L, E].
        key, value: [batch..., S, E].
        mask: broadcasts to [batch..., group, L, S]; or None.
    """

    def __init__(self, b: Builder, query: Value, key: Value, value: Value, mask: Optional[Value], lead: Sequence[Size]):
        lead = list(lead)
        heads, key_heads = (lead[-1], key.sizes[-3]) if len(lead) > 1 and key.rank > 2 else (1, 1)
        grouped = isinstance(heads, int) and isinstance(key_heads, int) and key_heads not in (1, heads)
        group = heads // key_heads if grouped else 1
        self.lead = lead
        self.sizes = [*lead[:-1], key_heads, group] if grouped else [*lead, 1]
        self.batch = list(range(len(self.sizes) - 1))
        self.query = self.split(b, query)
        self.key = b.broadcast(key, [*self.sizes[:-1], *key.sizes[-2:]])
        self.value = b.broadcast(value, [*self.sizes[:-1], *value.sizes[-2:]])
        self.mask = mask
        if mask is not None and mask.rank > 2:
            if not grouped:
                self.mask = b.reshape(mask, [*mask.sizes[:-2], 1, *mask.sizes[-2:]])
            elif mask.sizes[-3] == 1:
                self.mask = b.reshape(mask, [*mask.sizes[:-3], 1, 1, *mask.sizes[-2:]])
            else:
                self.mask = b.reshape(mask, [*mask.sizes[:-3], key_heads, group, *mask.sizes[-2:]])

    def split(self, b: Builder, x: Value) -> Value:
        """A tensor of query heads with the group apart."""
        return b.reshape(b.broadcast(x, [*self.lead, *x.sizes[-2:]]), [*self.sizes, *x.sizes[-2:]])


def _attention(b: Builder, query: Value, key: Value, value: Value, mask, is_causal: bool, scale, log_sum: bool = False):
    """softmax(query . key * scale + mask) . value. Rows that the mask covers wholly give 0 (ATen's _safe_softmax)."""
    lead, length = b.outputs[0].sizes[:-2], query.sizes[-2]
    shape = _Heads(b, query, key, value, mask, lead)
    scores, _ = _scores(b, shape.query, shape.key, shape.mask, is_causal, scale, shape.batch)
    dims = [scores.rank - 1]
    highest = b.reduce(scores, "max", dims)
    if mask is not None:
        empty = b.with_scalar("eq", highest, -math.inf)
        highest = b.select(empty, b.full(0, highest.sizes, highest.dtype), highest)
    powers = b.unary("exp", b.binary("sub", scores, spread(b, highest, scores.sizes, dims)))
    total = b.reduce(powers, "sum", dims)
    divisor = total
    if mask is not None:
        divisor = b.select(empty, b.full(1, total.sizes, total.dtype), total)
    weights = b.binary("div", powers, spread(b, divisor, scores.sizes, dims))
    rank = len(shape.batch)
    result = b.dot(b.convert(weights, value.dtype), shape.value, shape.batch, shape.batch, [rank + 2], [rank])
    result = b.reshape(b.convert(result, query.dtype), [*lead, length, value.sizes[-1]])
    if not log_sum:
        return result
    return result, b.reshape(b.binary("add", highest, b.unary("log", total)), [*lead, length])


@lowers(aten.scaled_dot_product_attention.default)
def attention(b, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False):
    if dropout_p:
        raise Unsupported("attention with dropout needs random numbers")
    return _attention(b, query, key, value, attn_mask, is_causal, scale)


@lowers(aten._scaled_dot_product_flash_attention_for_cpu.default)
def flash_attention(b, query, key, value, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    if dropout_p:
        raise Unsupported("attention with dropout needs random numbers")
    result, logs = _attention(b, query, key, value, attn_mask, is_causal, scale, log_sum=True)
    return result, b.convert(logs, b.outputs[1].dtype)


@lowers(aten._scaled_dot_product_flash_attention_for_cpu_backward.default)
def flash_attention_backward(
    b, grad, query, key, value, out, logsumexp, dropout_p, is_causal, *, attn_mask=None, scale=None
):
    """With P = softmax(S), S = scale * Q K' + mask: dV = P' dO, dS = P * (dO V' - rowsum(dO * O)), dQ = scale * dS K."""
    if dropout_p:
        raise Unsupported("attention with dropout needs random numbers")
    shape = _Heads(b, query, key, value, attn_mask, query.sizes[:-2])
    scores, scale = _scores(b, shape.query, shape.key, shape.mask, is_causal, scale, shape.batch)
    wide = scores.dtype
    grad, out = shape.split(b, grad), shape.split(b, out)
    rank, dims = len(shape.batch), [scores.rank - 1]
    logs = b.reshape(b.convert(logsumexp, wide), scores.sizes[:-1])
    powers = b.unary("exp", b.binary("sub", scores, spread(b, logs, scores.sizes, dims)))
    if attn_mask is not None:
        empty = b.with_scalar("eq", logs, -math.inf)
        powers = b.select(spread(b, empty, scores.sizes, dims), b.full(0, scores.sizes, wide), powers)
    inner = b.reduce(b.binary("mul", b.convert(grad, wide), b.convert(out, wide)), "sum", [grad.rank - 1])
    weights = b.dot(grad, shape.value, shape.batch, shape.batch, [rank + 2], [rank + 1])
    weights = b.binary("mul", powers, b.binary("sub", weights, spread(b, inner, scores.sizes, dims)))
    weights = b.convert(b.with_scalar("mul", weights, scale), query.dtype)
    powers = b.convert(powers, query.dtype)
    pair = [rank, rank + 1]  # the group and the query's position
    grads = (
        b.dot(weights, shape.key, shape.batch, shape.batch, [rank + 2], [rank]),
        b.dot(weights, shape.query, shape.batch, shape.batch, pair, pair),
        b.dot(powers, grad, shape.batch, shape.batch, pair, pair),
    )
    return tuple(b.reshape(b.convert(g, o.dtype), o.sizes) for g, o in zip(grads, b.outputs))


@lowers(aten._cdist_forward.default)
def cdist(b: Builder, x: Value, y: Value, p: float, compute_mode: Optional[int] = None) -> Value:
    """The p-norm of each difference of a row of x and a row of y."""
    *lead, rows, columns = b.out.sizes
    sizes = [*lead, rows, columns, x.sizes[-1]]
    dtype = opmath(b.out.dtype)
    u = b.broadcast(b.convert(x, dtype), [*lead, rows, x.sizes[-1]])
    v = b.broadcast(b.convert(y, dtype), [*lead, columns, x.sizes[-1]])
    u = b.broadcast(b.reshape(u, [*lead, rows, 1, x.sizes[-1]]), sizes)
    v = b.broadcast(b.reshape(v, [*lead, 1, columns, x.sizes[-1]]), sizes)
    difference, dims = b.unary("abs", b.binary("sub", u, v)), [len(sizes) - 1]
    if p == 0:
        return finish(b, b.reduce(b.convert(b.with_scalar("ne", difference, 0), dtype), "sum", dims))
    if p == math.inf:
        return finish(b, b.reduce(b.with_scalar("max", difference, 0), "max", dims))
    if p == 1:
        return finish(b, b.reduce(difference, "sum", dims))
    if p == 2:
        return finish(b, b.unary("sqrt", b.reduce(b.binary("mul", difference, difference), "sum", dims)))
    total = b.reduce(b.with_scalar("pow", difference, p), "sum", dims)
    return finish(b, b.with_scalar("pow", total, 1.0 / p))
