"""Reductions, scans, sorting and the normalisations made of them.

Numbers: eager accumulates f16 and bf16 in f32 and rounds once; formulas of several steps convert to f32 first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional, Union

import torch

from ..builder import FLOATS, Builder, Scalar, Value
from ..sizes import Size, floor_divide, product
from . import Unsupported, lowers
from .elementwise import finish, opmath
from .shape import wrap, wrap_all

aten = torch.ops.aten
Dims = Union[int, Sequence[int], None]


def count(b: Builder, sizes: Sequence[Size], dtype: torch.dtype, minus: Scalar = 0) -> Union[Scalar, Value]:
    """The number of elements less `minus`: a Python number, or a 0-d value of the dtype if sizes are not known."""
    total = product(sizes)
    if isinstance(total, int):
        return total - minus
    value = b.convert(b.size(total), dtype)
    return b.with_scalar("sub", value, minus) if minus else value


def divide_by(b: Builder, x: Value, divisor: Union[Scalar, Value]) -> Value:
    return b.binary("div", x, b.full(divisor, x.sizes, x.dtype))


def _fold(b: Builder, combiner: str, x: Value, dims: Sequence[int], keepdim: bool = False) -> Value:
    """A sum or product in the result's dtype; of truths these are any and all."""
    x = b.convert(x, b.out.dtype)
    if x.dtype is torch.bool:
        combiner = {"sum": "any", "prod": "all"}[combiner]
    return b.reduce(x, combiner, dims, keepdim)


@lowers(aten.sum.dim_IntList, aten.sum.default)
def sum(b: Builder, x: Value, dim: Dims = None, keepdim: bool = False, dtype: Optional[torch.dtype] = None) -> Value:
    return _fold(b, "sum", x, wrap_all(dim, x.rank), keepdim)


@lowers(aten.prod.default)
def prod(b: Builder, x: Value, dtype: Optional[torch.dtype] = None) -> Value:
    return _fold(b, "prod", x, range(x.rank))


@lowers(aten.prod.dim_int)
def prod_dim(b: Builder, x: Value, dim: int, keepdim: bool = False, dtype: Optional[torch.dtype] = None) -> Value:
    return _fold(b, "prod", x, wrap_all(dim, x.rank), keepdim)


@lowers(aten.mean.dim, aten.mean.default)
def mean(b: Builder, x: Value, dim: Dims = None, keepdim: bool = False, dtype: Optional[torch.dtype] = None) -> Value:
    dims = wrap_all(dim, x.rank)
    wide = b.convert(b.convert(x, b.out.dtype), opmath(b.out.dtype))
    return keep(b, finish(b, _average(b, wide, dims)), x.sizes, dims, keepdim)


def _extreme(b: Builder, combiner: str, x: Value, dims: Sequence[int], keepdim: bool) -> Value:
    if x.dtype is torch.bool:
        combiner = {"max": "any", "min": "all"}[combiner]
    return b.reduce(x, combiner, dims, keepdim)


@lowers(aten.amax.default)
def amax(b: Builder, x: Value, dim: Dims = (), keepdim: bool = False) -> Value:
    return _extreme(b, "max", x, wrap_all(dim, x.rank), keepdim)


@lowers(aten.amin.default)
def amin(b: Builder, x: Value, dim: Dims = (), keepdim: bool = False) -> Value:
    return _extreme(b, "min", x, wrap_all(dim, x.rank), keepdim)


def _check_not_empty(b: Builder, x: Value, name: str) -> None:
    message = (
        f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the"
    )
    b.check(b.with_scalar("ne", b.size(product(x.sizes)), 0), f"RuntimeError: {message} 'dim' argument.")


@lowers(aten.max.default)
def max(b: Builder, x: Value) -> Value:
    if not b.bounds.is_at_most(1, product(x.sizes)):
        _check_not_empty(b, x, "max")
    return _extreme(b, "max", x, range(x.rank), False)


@lowers(aten.min.default)
def min(b: Builder, x: Value) -> Value:
    if not b.bounds.is_at_most(1, product(x.sizes)):
        _check_not_empty(b, x, "min")
    return _extreme(b, "min", x, range(x.rank), False)


def _truths(b: Builder, x: Value) -> Value:
    return b.convert(x, torch.bool)


@lowers(aten.any.default, aten.any.dim, aten.any.dims)
def any(b: Builder, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return finish(b, b.reduce(_truths(b, x), "any", _logical_dims(dim, x.rank), keepdim))


@lowers(aten.all.default, aten.all.dim, aten.all.dims)
def all(b: Builder, x: Value, dim: Dims = None, keepdim: bool = False) -> Value:
    return finish(b, b.reduce(_truths(b, x), "all", _logical_dims(dim, x.rank), keepdim))


def _logical_dims(dim: Dims, rank: int) -> list[int]:
    """any and all over an empty list of dimensions reduce nothing, unlike sums."""
    return [] if isinstance(dim, (list, tuple)) and len(dim) == 0 else wrap_all(dim, rank)


# ---- variances


def spread(b: Builder, x: Value, sizes: Sequence[Size], dims: Sequence[int]) -> Value:
    """A reduction's result back over the dimensions that it dropped."""
    return b.broadcast_in_dim(x, sizes, [k for k in range(len(sizes)) if k not in dims])


def keep(b: Builder, x: Value, sizes: Sequence[Size], dims: Sequence[int], keepdim: bool = True) -> Value:
    """A reduction's result with the dropped dimensions as 1, if keepdim."""
    return b.reshape(x, [1 if k in dims else size for k, size in enumerate(sizes)]) if keepdim else x


def _average(b: Builder, x: Value, dims: Sequence[int]) -> Value:
    return divide_by(b, b.reduce(x, "sum", dims), count(b, [x.sizes[k] for k in dims], x.dtype))


def _variance(b: Builder, x: Value, dims: Sequence[int], correction: Scalar) -> tuple[Value, Value]:
    """Variance and mean over dims (dropped), by two passes: the mean, then the mean square of the differences from it."""
    wide = b.convert(x, opmath(x.dtype))
    average = _average(b, wide, dims)
    difference = b.binary("sub", wide, spread(b, average, wide.sizes, dims))
    total = b.reduce(b.binary("mul", difference, difference), "sum", dims)
    divisor = count(b, [x.sizes[k] for k in dims], wide.dtype, correction)
    if isinstance(divisor, Value):
        divisor = b.binary("max", divisor, b.scalar(0, wide.dtype))
    elif divisor < 0:
        divisor = 0
    return divide_by(b, total, divisor), average


def _moments(
    b: Builder, x: Value, dim: Dims, correction: Optional[Scalar], keepdim: bool, names: str
) -> tuple[Value, ...]:
    dims = wrap_all(dim, x.rank)
    variance, average = _variance(b, x, dims, 1 if correction is None else correction)
    values = {"var": variance, "mean": average}
    if "std" in names:
        values["std"] = b.unary("sqrt", variance)
    return tuple(keep(b, b.convert(values[name], b.out.dtype), x.sizes, dims, keepdim) for name in names.split())


@lowers(aten.var.correction)
def var(b: Builder, x: Value, dim: Dims = None, *, correction: Optional[Scalar] = None, keepdim: bool = False) -> Value:
    return _moments(b, x, dim, correction, keepdim, "var")[0]


@lowers(aten.std.correction)
def std(b: Builder, x: Value, dim: Dims = None, *, correction: Optional[Scalar] = None, keepdim: bool = False) -> Value:
    return _moments(b, x, dim, correction, keepdim, "std")[0]


@lowers(aten.var_mean.correction)
def var_mean(b: Builder, x: Value, dim: Dims = None, *, correction: Optional[Scalar] = None, keepdim: bool = False):
    return _moments(b, x, dim, correction, keepdim, "var mean")


@lowers(aten.std_mean.correction)
def std_mean(b: Builder, x: Value, dim: Dims = None, *, correction: Optional[Scalar] = None, keepdim: bool = False):
    return _moments(b, x, dim, correction, keepdim, "std mean")


# ---- softmax and norms


def softmax_of(b: Builder, x: Value, dim: int, log: bool) -> Value:
    """exp(x - max) / sum, or x - max - log(sum), along dim, in the dtype of x."""
    dim = wrap(dim, x.rank)
    dims = [dim] if x.rank else []
    shifted = b.binary("sub", x, spread(b, b.reduce(x, "max", dims), x.sizes, dims))
    powers = b.unary("exp", shifted)
    total = b.reduce(powers, "sum", dims)
    if log:
        return b.binary("sub", shifted, spread(b, b.unary("log", total), x.sizes, dims))
    return b.binary("div", powers, spread(b, total, x.sizes, dims))


@lowers(aten._softmax.default)
def softmax(b: Builder, x: Value, dim: int, half_to_float: bool) -> Value:
    return finish(b, softmax_of(b, b.convert(x, opmath(x.dtype)), dim, False))


@lowers(aten._log_softmax.default)
def log_softmax(b: Builder, x: Value, dim: int, half_to_float: bool) -> Value:
    return finish(b, softmax_of(b, b.convert(x, opmath(x.dtype)), dim, True))


def _normalised(b: Builder, x: Value, dims: Sequence[int], eps: float) -> tuple[Value, Value, Value]:
    """(x - mean) / sqrt(var + eps) over dims, with the mean and the reciprocal deviation, dims kept."""
    variance, average = _variance(b, x, dims, 0)
    rstd = b.unary("rsqrt", b.with_scalar("add", variance, eps))
    difference = b.binary("sub", x, spread(b, average, x.sizes, dims))
    return b.binary("mul", difference, spread(b, rstd, x.sizes, dims)), average, rstd


def _affine(b: Builder, x: Value, weight: Optional[Value], bias: Optional[Value], sizes: Sequence[Size]) -> Value:
    """x * weight + bias, both reshaped to the sizes (which broadcast to x's)."""
    for name, factor in (("mul", weight), ("add", bias)):
        if factor is not None:
            factor = b.broadcast(b.reshape(b.convert(factor, x.dtype), sizes), x.sizes)
            x = b.binary(name, x, factor)
    return x


@lowers(aten.native_layer_norm.default)
def layer_norm(b: Builder, x: Value, normalized_shape: Sequence[Size], weight, bias, eps: float):
    dims = range(x.rank - len(normalized_shape), x.rank)
    wide = b.convert(x, opmath(x.dtype))
    y, average, rstd = _normalised(b, wide, dims, eps)
    y = _affine(b, y, weight, bias, x.sizes[x.rank - len(normalized_shape) :])
    stats = [b.convert(keep(b, s, x.sizes, dims), o.dtype) for s, o in zip((average, rstd), b.outputs[1:])]
    return finish(b, y), *stats


@lowers(aten.native_group_norm.default)
def group_norm(b: Builder, x: Value, weight, bias, n: Size, c: Size, hxw: Size, group: int, eps: float):
    if not isinstance(c, int):
        raise Unsupported("a number of channels that is not constant")
    wide = b.convert(x, opmath(x.dtype))
    grouped = b.reshape(wide, [n, group, c // group, *x.sizes[2:]])
    y, average, rstd = _normalised(b, grouped, range(2, grouped.rank), eps)
    y = _affine(b, b.reshape(y, x.sizes), weight, bias, [c] + [1] * (x.rank - 2))
    stats = [b.reshape(b.convert(s, o.dtype), o.sizes) for s, o in zip((average, rstd), b.outputs[1:])]
    return b.convert(y, b.outputs[0].dtype), *stats


@lowers(aten._native_batch_norm_legit_no_training.default)
def batch_norm_inference(b: Builder, x: Value, weight, bias, mean: Value, var: Value, momentum: float, eps: float):
    dtype = opmath(x.dtype)
    channel = [x.sizes[1]] + [1] * (x.rank - 2)
    rstd = b.with_scalar("add", b.convert(var, dtype), eps)
    rstd = b.binary("div", b.full(1.0, rstd.sizes, dtype), b.unary("sqrt", rstd))
    # as ATen's inference kernel: alpha = rstd * weight, beta = bias - mean * alpha
    alpha = rstd if weight is None else b.binary("mul", rstd, b.convert(weight, dtype))
    beta = b.unary("neg", b.binary("mul", b.convert(mean, dtype), alpha))
    if bias is not None:
        beta = b.binary("add", beta, b.convert(bias, dtype))
    y = _affine(b, b.convert(x, dtype), alpha, beta, channel)
    empty = [b.full(0, o.sizes, o.dtype) for o in b.outputs[1:]]
    return b.convert(y, b.outputs[0].dtype), *empty


# ---- arg-reductions, sorting, scans


def _ordered(b: Builder, x: Value) -> Value:
    """Booleans as numbers, for the ops that order elements."""
    return b.convert(x, torch.uint8) if x.dtype is torch.bool else x


def _arg(b: Builder, extremum: str, x: Value, dim: Optional[int], keepdim: bool) -> Value:
    if dim is None or x.rank == 0:
        flat = b.reshape(_ordered(b, x), [product(x.sizes)])
        return b.reshape(b.arg_reduce(flat, extremum, 0), b.out.sizes)
    return b.reshape(b.arg_reduce(_ordered(b, x), extremum, wrap(dim, x.rank)), b.out.sizes)


@lowers(aten.argmax.default)
def argmax(b: Builder, x: Value, dim: Optional[int] = None, keepdim: bool = False) -> Value:
    return _arg(b, "max", x, dim, keepdim)


@lowers(aten.argmin.default)
def argmin(b: Builder, x: Value, dim: Optional[int] = None, keepdim: bool = False) -> Value:
    return _arg(b, "min", x, dim, keepdim)


def _with_index(b: Builder, extremum: str, x: Value, dim: int, keepdim: bool) -> tuple[Value, Value]:
    sizes = b.outputs[0].sizes
    if x.rank == 0:
        return x, b.scalar(0, torch.int64)
    dim = wrap(dim, x.rank)
    index = b.arg_reduce(_ordered(b, x), extremum, dim)
    if x.dtype in FLOATS:
        # the element itself: the extreme of 0 and -0 may be either
        places = [index if k == dim else b.iota(index.sizes, k - (k > dim)) for k in range(x.rank)]
        values = b.gather(x, places, list(range(x.rank)))
    else:
        values = _extreme(b, extremum, x, [dim], False)
    return b.reshape(values, sizes), b.reshape(index, sizes)


@lowers(aten.max.dim)
def max_dim(b: Builder, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return _with_index(b, "max", x, dim, keepdim)


@lowers(aten.min.dim)
def min_dim(b: Builder, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return _with_index(b, "min", x, dim, keepdim)


def _sorted(b: Builder, x: Value, dim: int, descending: bool) -> tuple[Value, Value]:
    if x.rank == 0:
        return x, b.scalar(0, torch.int64)
    values, indices = b.sort(_ordered(b, x), wrap(dim, x.rank), descending)
    return b.convert(values, x.dtype), indices


@lowers(aten.sort.default)
def sort(b: Builder, x: Value, dim: int = -1, descending: bool = False) -> tuple[Value, Value]:
    return _sorted(b, x, dim, descending)


@lowers(aten.sort.stable)
def sort_stable(b: Builder, x: Value, *, stable: bool = True, dim: int = -1, descending: bool = False):
    return _sorted(b, x, dim, descending)


@lowers(aten.topk.default)
def topk(
    b: Builder, x: Value, k: Size, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    values, indices = _sorted(b, x, dim, largest)
    if x.rank == 0:
        return values, indices
    dim = wrap(dim, x.rank)
    return b.slice_dim(values, dim, 0, k), b.slice_dim(indices, dim, 0, k)


def _scan(b: Builder, combiner: str, x: Value, dim: int) -> Value:
    wide = b.convert(b.convert(x, b.out.dtype), opmath(b.out.dtype))
    return finish(b, b.scan(wide, combiner, wrap(dim, x.rank)) if x.rank else wide)


@lowers(aten.cumsum.default)
def cumsum(b: Builder, x: Value, dim: int, dtype: Optional[torch.dtype] = None) -> Value:
    return _scan(b, "sum", x, dim)


@lowers(aten.cumprod.default)
def cumprod(b: Builder, x: Value, dim: int, dtype: Optional[torch.dtype] = None) -> Value:
    return _scan(b, "prod", x, dim)


def _running_extreme(b: Builder, extremum: str, x: Value, dim: int) -> tuple[Value, Value]:
    """Running extreme and the last position so far that has it; NaN, once met, stays."""
    if x.rank == 0:
        return x, b.scalar(0, torch.int64)
    dim = wrap(dim, x.rank)
    ordered = _ordered(b, x)
    values = b.scan(ordered, extremum, dim)
    has_it = b.compare("eq", ordered, values)
    if x.dtype in FLOATS:
        has_it = b.binary("or", has_it, b.compare("ne", ordered, ordered))
    place = b.select(has_it, b.iota(x.sizes, dim), b.full(0, x.sizes, torch.int64))
    index = b.scan(place, "max", dim)
    if x.dtype in FLOATS:
        # the element itself: the extreme of 0 and -0 may be either
        places = [index if k == dim else b.iota(x.sizes, k) for k in range(x.rank)]
        return b.gather(x, places, list(range(x.rank))), index
    return b.convert(values, x.dtype), index


@lowers(aten.cummax.default)
def cummax(b: Builder, x: Value, dim: int) -> tuple[Value, Value]:
    return _running_extreme(b, "max", x, dim)


@lowers(aten.cummin.default)
def cummin(b: Builder, x: Value, dim: int) -> tuple[Value, Value]:
    return _running_extreme(b, "min", x, dim)


# ---- order statistics


def _median(b: Builder, x: Value, dim: int, keepdim: bool, ignore_nan: bool) -> tuple[Value, Value]:
    """The lower of the two middle elements. NaN sorts last: it is the median of all, or is left out of the count."""
    if x.rank == 0:
        return x, b.scalar(0, torch.int64)
    dim = wrap(dim, x.rank)
    size = x.sizes[dim]
    values, indices = _sorted(b, x, dim, False)
    middle = b.full(b.size(floor_divide(size - 1, 2)), [s for k, s in enumerate(x.sizes) if k != dim], torch.int64)
    if x.dtype in FLOATS:
        missing = b.convert(b.compare("ne", x, x), torch.int64)
        count = b.binary("sub", b.full(b.size(size), middle.sizes, torch.int64), b.reduce(missing, "sum", [dim]))
        if ignore_nan:
            middle = b.with_scalar("max", b.with_scalar("div", b.with_scalar("sub", count, 1), 2), 0)
        else:
            last = b.full(b.size(size - 1), middle.sizes, torch.int64)
            middle = b.select(b.compare("le", count, last), b.binary("min", count, last), middle)
    places = [middle if k == dim else b.iota(middle.sizes, k - (k > dim)) for k in range(x.rank)]
    dims = list(range(x.rank))
    sizes = b.outputs[0].sizes
    return b.reshape(b.gather(values, places, dims), sizes), b.reshape(b.gather(indices, places, dims), sizes)


@lowers(aten.median.dim)
def median_dim(b: Builder, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return _median(b, x, dim, keepdim, False)


@lowers(aten.nanmedian.dim)
def nanmedian_dim(b: Builder, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
    return _median(b, x, dim, keepdim, True)


@lowers(aten.median.default)
def median(b: Builder, x: Value) -> Value:
    return _median(b, b.reshape(x, [product(x.sizes)]), 0, False, False)[0]


@lowers(aten.nanmedian.default)
def nanmedian(b: Builder, x: Value) -> Value:
    return _median(b, b.reshape(x, [product(x.sizes)]), 0, False, True)[0]


@lowers(aten.kthvalue.default)
def kthvalue(b: Builder, x: Value, k: Size, dim: int = -1, keepdim: bool = False) -> tuple[Value, Value]:
    if x.rank == 0:
        return x, b.scalar(0, torch.int64)
    dim = wrap(dim, x.rank)
    values, indices = _sorted(b, x, dim, False)
    sizes = b.outputs[0].sizes
    value, index = (b.reshape(b.slice_dim(v, dim, k - 1, k), sizes) for v in (values, indices))
    return value, index


def _positions(b: Builder, boundaries: Value, x: Value, right: bool) -> Value:
    """How many boundaries (last dimension) lie below each element of x, or not above it if right; NaN lies above all."""
    sizes = [*x.sizes, boundaries.sizes[-1]]
    rank = len(sizes)
    if boundaries.rank == 1:
        limits = b.broadcast_in_dim(boundaries, sizes, [rank - 1])
    else:
        limits = b.broadcast_in_dim(boundaries, sizes, [*range(rank - 2), rank - 1])
    values = b.broadcast_in_dim(x, sizes, range(rank - 1))
    above = b.compare("gt" if right else "ge", limits, values)
    return finish(b, b.reduce(b.convert(b.unary("not", above), torch.int64), "sum", [rank - 1]))


@lowers(aten.bucketize.Tensor)
def bucketize(b: Builder, x: Value, boundaries: Value, *, out_int32: bool = False, right: bool = False) -> Value:
    dtype = torch.promote_types(x.dtype, boundaries.dtype)
    return _positions(b, b.convert(boundaries, dtype), b.convert(x, dtype), right)


@lowers(aten.searchsorted.Tensor)
def searchsorted(
    b: Builder,
    boundaries: Value,
    x: Value,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: Optional[str] = None,
    sorter=None,
) -> Value:
    dtype = torch.promote_types(x.dtype, boundaries.dtype)
    boundaries = b.convert(boundaries, dtype)
    if sorter is not None:
        places = [sorter if k == boundaries.rank - 1 else b.iota(sorter.sizes, k) for k in range(boundaries.rank)]
        boundaries = b.gather(boundaries, places, list(range(boundaries.rank)))
    return _positions(b, boundaries, b.convert(x, dtype), right or side == "right")
