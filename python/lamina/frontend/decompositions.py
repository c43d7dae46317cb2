"""The one list of PyTorch's own decompositions that programs are taken through before they are imported.

It is torch's core ATen list, the decompositions below that prim needs on top, less every op that the importer's table
takes itself.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch._decomp import core_aten_decompositions, decomposition_table

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
    aten.ldexp.Tensor,
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


@functools.cache
def decompositions() -> dict[torch._ops.OpOverload, Callable]:
    """ATen overload -> decomposition."""
    table = dict(core_aten_decompositions())
    for op in _EXTRA:
        table[op] = decomposition_table[op]
    for op in _NOT_OF_BYTES:
        table[op] = _not_of_bytes(table[op])
    return {op: function for op, function in table.items() if op not in TABLE}
