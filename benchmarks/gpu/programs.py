"""What is packaged and run on a GPU: those of the CPU's workloads that say something there, and larger products."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ..workloads import WORKLOADS, Made, Product, Workload

INDEX = "programs.json"
"""In a folder of packages: what is in it."""

_TOLERANCE = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 2e-2}
_SUFFIX = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}

_CHOSEN = (
    "pointwise12", "softmax", "ln_res_gelu", "rmsnorm", "sum_rows", "sum_full", "optimized_net_f32", "optimized_net_bf16",
    "matmul1024_f32", "matmul1024_f16", "matmul1024_bf16", "matmul4096_f32", "matmul4096_f16", "matmul4096_bf16",
    "bmm16x256_bf16", "mlp_f32", "mlp_bf16", "attn_naive_s1024_f32", "attn_naive_s1024_bf16", "attn_naive_s4096_bf16",
    "sdpa_s1024_f32", "sdpa_s1024_bf16", "sdpa_s4096_bf16", "convblock_f32", "convblock_bf16",
    "llama", "bert", "gpt2", "vit", "resnet50",
)  # fmt: skip
"""In the order in which they run: what compiles fast comes first."""


def _product(size: int, dtype: torch.dtype) -> Made:
    return Product(), tuple(torch.randn(size, size).to(dtype) for _ in range(2))


def _products() -> Iterable[Workload]:
    for size in (1024, 4096):
        for dtype, suffix in _SUFFIX.items():
            name = f"matmul{size}_{suffix}"
            yield Workload(name, frozenset({"matmul", suffix}), partial(_product, size, dtype), _TOLERANCE[dtype])


_ALL = {**{workload.name: workload for workload in _products()}, **WORKLOADS}
PROGRAMS = {name: _ALL[name] for name in _CHOSEN}


def select(text: str) -> list[str]:
    """The names that a comma-separated list of names and groups means; all of an empty one.

    Raises:
        ValueError: a name is unknown.
    """
    wanted = {name.strip() for name in text.split(",") if name.strip()}
    groups = {group for workload in PROGRAMS.values() for group in workload.groups}
    if unknown := sorted(wanted - set(PROGRAMS) - groups):
        raise ValueError(
            f"there is no program or group {unknown[0]!r}; there are {', '.join([*PROGRAMS, *sorted(groups)])}"
        )
    return [name for name, work in PROGRAMS.items() if not wanted or name in wanted or work.groups & wanted]


def read_index(folder: Path) -> dict[str, dict[str, Any]]:
    """Of each program of a folder its ``file``, or the ``error`` that its compilation ended with.

    Raises:
        OSError, ValueError: the folder has none.
    """
    return json.loads((folder / INDEX).read_text())["programs"]
