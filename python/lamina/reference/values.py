"""Values of the interpreter: NumPy arrays, their element types, and conversions between them.

Every element type is a NumPy dtype; bf16 is ml_dtypes' bfloat16, i1 is bool, ui8 is uint8.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from mlir import ir

from .errors import InvalidModuleError

if TYPE_CHECKING:
    import torch

Array = np.ndarray[Any, np.dtype[Any]]

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

ELEMENT_TYPES: dict[str, np.dtype[Any]] = {
    "f64": np.dtype(np.float64),
    "f32": np.dtype(np.float32),
    "f16": np.dtype(np.float16),
    "bf16": BFLOAT16,
    "i64": np.dtype(np.int64),
    "i32": np.dtype(np.int32),
    "i16": np.dtype(np.int16),
    "i8": np.dtype(np.int8),
    "ui8": np.dtype(np.uint8),
    "i1": np.dtype(np.bool_),
}
"""dtype of each MLIR element type."""

_NARROW_FLOATS = (np.dtype(np.float16), BFLOAT16)


def is_narrow(dtype: np.dtype[Any]) -> bool:
    """Whether arithmetic on the type is done in float32 and rounded: f16 and bf16."""
    return dtype in _NARROW_FLOATS


def is_float(dtype: np.dtype[Any]) -> bool:
    """Whether the type is f64, f32, f16 or bf16."""
    return dtype.kind == "f" or dtype == BFLOAT16


def is_signed(dtype: np.dtype[Any]) -> bool:
    """Whether the type is a signed integer."""
    return dtype.kind == "i"


def get_dtype(type: ir.Type) -> np.dtype[Any]:
    """Returns the dtype of a tensor type's elements."""
    name = str(ir.RankedTensorType(type).element_type)
    if name not in ELEMENT_TYPES:
        raise InvalidModuleError(f"{type} has an element type that prim has not")
    return ELEMENT_TYPES[name]


def get_shape(type: ir.Type) -> tuple[int | None, ...]:
    """Returns a tensor type's sizes, None where it says `?`."""
    ranked = ir.RankedTensorType(type)
    return tuple(None if ranked.is_dynamic_dim(i) else ranked.get_dim_size(i) for i in range(ranked.rank))


def check_value(value: Array, type: ir.Type) -> None:
    """Raises InvalidModuleError unless the array has the tensor type's dtype, rank and static sizes."""
    shape = get_shape(type)
    fits = value.ndim == len(shape) and all(n in (None, m) for n, m in zip(shape, value.shape, strict=True))
    if not fits or value.dtype != get_dtype(type):
        raise InvalidModuleError(f"the value is {value.dtype.name}{list(value.shape)}, its type is {type}")


def convert(value: Array, dtype: np.dtype[Any]) -> Array:
    """Converts elements as `prim.convert` does.

    Floats round to nearest even; f16 and bf16 are reached through float32, from f64 and integers too, because that is
    where eager PyTorch's conversions pass. Floats truncate to integers, integers keep their low bits, and i1 is x != 0.
    A float that the integer type cannot hold is undefined; here it keeps the low bits of its 64-bit value.
    """
    with np.errstate(all="ignore"):
        if dtype == np.bool_:
            return np.asarray(value != 0)
        if is_narrow(dtype) and value.dtype != dtype:
            return value.astype(np.float32).astype(dtype)
        if is_float(value.dtype) and not is_float(dtype):
            return value.astype(np.float64).astype(np.int64).astype(dtype)
        return value.astype(dtype)


def read_constant(attr: ir.Attribute) -> Array:
    """Returns the elements of a dense attribute."""
    type = ir.RankedTensorType(attr.type)
    dtype = get_dtype(type)
    if not isinstance(attr, ir.DenseElementsAttr):
        raise InvalidModuleError(f"a constant must be dense, not {attr}")
    if 0 in type.shape:
        return np.zeros(type.shape, dtype)
    if dtype == BFLOAT16:
        return _read_bfloat16(attr, tuple(type.shape))
    if dtype == np.bool_:  # the bindings' buffer of a splat i1 reads past its one bit
        return np.array([attr[i] for i in range(len(attr))], dtype).reshape(type.shape)
    return np.array(attr, dtype=dtype).reshape(type.shape)


def _read_bfloat16(attr: ir.Attribute, shape: tuple[int, ...]) -> Array:
    """Reads bf16 elements from the attribute's text: the bindings have no buffer of them."""
    text = str(attr)
    text = text[text.index("<") + 1 : text.index("> : tensor")]
    if text.startswith('"'):
        bits = np.frombuffer(bytes.fromhex(text.strip('"')[2:]), np.uint16)
    else:
        bits = np.array([_read_bfloat16_bits(word) for word in re.findall(r"[^\[\], ]+", text)], np.uint16)
    if bits.size == 1:
        bits = np.full(shape, bits[0])
    return np.asarray(bits.view(BFLOAT16).reshape(shape))


def _read_bfloat16_bits(word: str) -> int:
    """Returns the bits of one printed element: a decimal number, or its bits in hexadecimal."""
    return int(word, 16) if word.startswith("0x") else int(np.array(float(word), BFLOAT16).view(np.uint16))


def from_torch(tensor: torch.Tensor) -> Array:
    """Returns a contiguous NumPy copy of a tensor, of the same element type."""
    import torch

    tensor = tensor.detach().cpu().contiguous().clone()
    if tensor.dtype == torch.bfloat16:
        return np.asarray(tensor.view(torch.int16).numpy().view(BFLOAT16))
    return np.asarray(tensor.numpy())


def to_torch(array: Array) -> torch.Tensor:
    """Returns a contiguous tensor with a copy of the array, of the same element type."""
    import torch

    array = np.array(array, order="C")
    if array.dtype == BFLOAT16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
