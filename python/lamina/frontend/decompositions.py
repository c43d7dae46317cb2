"""The one list of PyTorch's own decompositions that programs are taken through before they are imported.

It is torch's core ATen list, the decompositions below that prim needs on top, less every op that the importer's table
takes itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch._decomp import core_aten_decompositions, decomposition_table
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND, elementwise_dtypes

from .table import TABLE

aten = torch.ops.aten

_EXTRA = (
    aten._adaptive_avg_pool2d.default,
    aten._batch_norm_no_update.default,
    aten._batch_norm_with_update_functional.default,
    aten._native_batch_norm_legit.default,
    aten._native_batch_norm_legit.no_stats,
    aten._native_batch_norm_legit_functional.default,
    aten.as_strided_copy.default,
    aten.as_strided_scatter.default,
    aten.batch_norm_backward.default,
    aten.bucketize.Scalar,
    aten.dist.default,
    aten.grid_sampler_2d.default,
    aten.hypot.default,
    aten.linalg_vector_norm.default,
    aten.max_pool2d_with_indices_backward.default,
    aten.narrow_copy.default,
    aten.native_batch_norm.default,
    aten.permute_copy.default,
    aten.tril_indices.default,
    aten.triu_indices.default,
    aten.unbind_copy.int,
    aten.upsample_bicubic2d.default,
    aten.upsample_bilinear2d.default,
    aten.upsample_bilinear2d.vec,
    aten.upsample_nearest2d.vec,
    aten.upsample_trilinear3d.default,
    aten.view_copy.default,
    aten.view_copy.dtype,
)


_NOT_OF_BYTES = (
    aten.upsample_bicubic2d.vec,
    aten.upsample_bicubic2d.default,
    aten.upsample_bilinear2d.default,
    aten.upsample_bilinear2d.vec,
)
"""Decompositions that round bytes otherwise than eager does, which interpolates them in fixed point."""


def _not_of_bytes(function: Callable) -> Callable:
    def decompose(x, *args, **kwargs):
        return NotImplemented if x.dtype is torch.uint8 else function(x, *args, **kwargs)

    return decompose


_ROUNDED_FIRST = (
    aten.addcdiv.default,
    aten.addcmul.default,
    aten.hypot.default,
    aten.special_xlog1py.default,
    aten.xlogy.Tensor,
)
"""Decompositions that compute in f32 with operands that eager first rounds to the 16 bits of the result."""


def _rounded_first(function: Callable) -> Callable:
    def decompose(*args, **kwargs):
        dtype = elementwise_dtypes(*args, type_promotion_kind=ELEMENTWISE_TYPE_PROMOTION_KIND.NO_OPMATH)[1]
        if dtype in (torch.float16, torch.bfloat16):
            args = tuple(x.to(dtype) if isinstance(x, torch.Tensor) else x for x in args)
        return function(*args, **kwargs)

    return decompose


def _not_of_integers(function: Callable) -> Callable:
    """A decomposition that computes what is an error in eager."""

    def decompose(x, *args, **kwargs):
        return function(x, *args, **kwargs) if x.dtype.is_floating_point else NotImplemented

    return decompose


@functools.cache
def decompositions() -> dict[torch._ops.OpOverload, Callable]:
    """ATen overload -> decomposition."""
    table = dict(core_aten_decompositions())
    for op in _EXTRA:
        table[op] = decomposition_table[op]
    for op in _NOT_OF_BYTES:
        table[op] = _not_of_bytes(table[op])
    for op in _ROUNDED_FIRST:
        table[op] = _rounded_first(table[op])
    table[aten.frac.default] = _not_of_integers(table[aten.frac.default])
    return {op: function for op, function in table.items() if op not in TABLE}
