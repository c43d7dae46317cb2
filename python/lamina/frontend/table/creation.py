"""ATen ops that make tensors from nothing but sizes and scalars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Union

import torch

from ..builder import FLOATS, Builder, Scalar, Value
from ..sizes import Size
from . import lowers
from .elementwise import filler, operand

aten = torch.ops.aten
Fill = Union[Scalar, Size]


def _filled(b: Builder, value: Any) -> Value:
    return filler(b, value, b.out.dtype)


@lowers(aten.full.default)
def full(b: Builder, size: Sequence[Size], value: Fill, **kwargs: Any) -> Value:
    return _filled(b, value)


@lowers(aten.full_like.default)
def full_like(b: Builder, x: Value, value: Fill, **kwargs: Any) -> Value:
    return _filled(b, value)


@lowers(aten.scalar_tensor.default)
def scalar_tensor(b: Builder, value: Fill, **kwargs: Any) -> Value:
    return _filled(b, value)


@lowers(
    aten.empty.memory_format,
    aten.empty_strided.default,
    aten.empty_like.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
)
def empty(b: Builder, *args: Any, **kwargs: Any) -> Value:
    """Uninitialised memory: zeros are as good as anything."""
    return _filled(b, 0)


@lowers(aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default)
def zeros(b: Builder, *args: Any, **kwargs: Any) -> Value:
    return _filled(b, 0)


@lowers(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def ones(b: Builder, *args: Any, **kwargs: Any) -> Value:
    return _filled(b, 1)


@lowers(aten.new_full.default)
def new_full(b: Builder, x: Value, size: Sequence[Size], value: Fill, **kwargs: Any) -> Value:
    return _filled(b, value)


@lowers(aten.arange.start_step)
def arange(b: Builder, start: Fill, end: Fill, step: Fill = 1, **kwargs: Any) -> Value:
    """start + i * step, computed as ATen does: in i64 for integers, else in the accumulation dtype of the CPU (f64)."""
    dtype = b.out.dtype
    compute = torch.float64 if dtype in FLOATS else torch.int64
    position = b.iota(b.out.sizes, 0)
    if start == 0 and step == 1:
        return b.convert(position, dtype)
    scaled = b.binary("mul", b.convert(position, compute), operand(b, step, compute))
    return b.convert(b.binary("add", scaled, operand(b, start, compute)), dtype)
