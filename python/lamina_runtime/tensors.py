"""Constants: a reader of the layout of safetensors (length of a JSON header, the header, the elements)."""

from __future__ import annotations

import math
import struct
import warnings
from typing import Any

import torch

from .archive import Data, read_json
from .errors import PackageError

DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I64": torch.int64,
    "I32": torch.int32, "I16": torch.int16, "I8": torch.int8, "U8": torch.uint8, "BOOL": torch.bool,
}  # fmt: skip


def read_tensors(data: Data, device: torch.device) -> dict[str, torch.Tensor]:
    """The tensors of a file of safetensors, on a device, contiguous; they share no memory with the file.

    Raises:
        PackageError: the file is damaged.
    """
    view = memoryview(data)
    facts = header(view)
    (length,) = struct.unpack_from("<Q", view)
    try:
        return {name: _tensor(view[8 + length :], each, device) for name, each in facts.items()}
    except (KeyError, TypeError, ValueError) as error:
        raise PackageError(f"the constants are damaged: {error}") from error


def header(data: Data) -> dict[str, Any]:
    """Dtype, shape and place of each tensor of a file of safetensors.

    Raises:
        PackageError: the file is damaged.
    """
    view = memoryview(data)
    try:
        (length,) = struct.unpack_from("<Q", view)
        facts = read_json(view[8 : 8 + length], "the constants' header")
        facts.pop("__metadata__", None)
    except (struct.error, AttributeError) as error:
        raise PackageError(f"the constants are damaged: {error}") from error
    return facts


def _tensor(data: memoryview, facts: dict[str, Any], device: torch.device) -> torch.Tensor:
    dtype, shape = DTYPES[facts["dtype"]], facts["shape"]
    start, end = facts["data_offsets"]
    if end - start != math.prod(shape) * dtype.itemsize or not 0 <= start <= end <= len(data):
        raise ValueError("a tensor has another size than its shape")
    if start == end:
        return torch.empty(shape, dtype=dtype, device=device)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the memory is not writable, and nothing writes to it
        raw = torch.frombuffer(data[start:end], dtype=torch.uint8)
    # Copied as bytes: elements may lie at any address of the file.
    result = torch.empty(shape, dtype=dtype, device=device)
    result.view(-1).view(torch.uint8).copy_(raw)
    return result
