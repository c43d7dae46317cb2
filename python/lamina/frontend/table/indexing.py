"""Reads and writes at indices. Indices that the user computes are checked as eager does, wrapped only where it wraps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Optional

import torch

from ..builder import Builder, Scalar, Value
from ..sizes import Size
from . import Unsupported, lowers
from .elementwise import operand
from .shape import wrap

aten = torch.ops.aten

_EMBEDDING = "IndexError: index out of range in self"


def _in_range(b: Builder, index: Value, low: Value, high: Value) -> Value:
    return b.binary("and", b.compare("ge", index, low), b.compare("lt", index, high))


def checked(b: Builder, index: Value, size: Size, message: str, wraps: bool = False) -> Value:
    """The index as i64, checked against 0..size-1 (or -size..size-1, then wrapped), and clamped so that no read fails."""
    index = b.convert(index, torch.int64)
    zero = b.full(0, index.sizes, torch.int64)
    limit = b.full(b.size(size), index.sizes, torch.int64)
    if wraps:
        b.check(_in_range(b, index, b.unary("neg", limit), limit), message)
        index = b.select(b.compare("lt", index, zero), b.binary("add", index, limit), index)
    else:
        b.check(_in_range(b, index, zero, limit), message)
    return index


@lowers(aten.embedding.default)
def embedding(b: Builder, weight: Value, indices: Value, padding_idx: int = -1, scale_grad_by_freq=False, sparse=False) -> Value:
    return b.gather(weight, [checked(b, indices, weight.sizes[0], _EMBEDDING)], [0])
