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
)


@functools.cache
def decompositions() -> dict[torch._ops.OpOverload, Callable]:
    """ATen overload -> decomposition."""
    table = dict(core_aten_decompositions())
    for op in _EXTRA:
        table[op] = decomposition_table[op]
    return {op: function for op, function in table.items() if op not in TABLE}
