"""Builds prim ops on values whose sizes and dtypes are known to Python."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Optional, Union

import mlir.ir as ir
import numpy as np
import torch

from lamina.dialects import prim

from .bounds import Bounds, BoundsAnalysis, of_elements
from .sizes import Size, SymbolTable, ceil_divide, floor_divide, normalise

Scalar = Union[bool, int, float]

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_ELEMENT_TYPES = {
    torch.float64: lambda: ir.F64Type.get(),
    torch.float32: lambda: ir.F32Type.get(),
    torch.float16: lambda: ir.F16Type.get(),
    torch.bfloat16: lambda: ir.BF16Type.get(),
    torch.int64: lambda: ir.IntegerType.get_signless(64),
    torch.int32: lambda: ir.IntegerType.get_signless(32),
    torch.int16: lambda: ir.IntegerType.get_signless(16),
    torch.int8: lambda: ir.IntegerType.get_signless(8),
    torch.uint8: lambda: ir.IntegerType.get_unsigned(8),
    torch.bool: lambda: ir.IntegerType.get_signless(1),
}
DTYPES = frozenset(_ELEMENT_TYPES)
FLOATS = frozenset((torch.float64, torch.float32, torch.float16, torch.bfloat16))
HALVES = frozenset((torch.float16, torch.bfloat16))


def element_type(dtype: torch.dtype) -> ir.Type:
    """The element type of tensors of a dtype."""
    return _ELEMENT_TYPES[dtype]()


class Value:
    """An SSA value with its sizes and torch dtype."""

    __slots__ = ("ir", "sizes", "dtype", "base", "bounds")

    def __init__(
        self,
        value: ir.Value,
        sizes: tuple[Size, ...],
        dtype: torch.dtype,
        base: Optional[Value] = None,
        bounds: Bounds = None,
    ):
        self.ir = value
        self.sizes = tuple(sizes)
        self.dtype = dtype
        self.base = base  # of a reshape, the value that it reshapes
        self.bounds = bounds  # of integers, where known

    @property
    def rank(self) -> int:
        return len(self.sizes)

    def __repr__(self) -> str:
        return f"Value({self.dtype}, {list(self.sizes)})"


class Output(NamedTuple):
    """What an ATen call returns, as torch's own meta function says."""

    sizes: tuple[Size, ...]
    dtype: torch.dtype


class Builder:
    """Makes prim ops at the current insertion point; every method computes the result's type itself."""

    def __init__(self, symbols: SymbolTable):
        self.symbols = symbols
        self._types: dict[tuple, ir.Type] = {}
        self._literals: dict[tuple[str, torch.dtype], tuple[ir.Attribute, tuple[int, ...], Bounds]] = {}
        self.checks: list[tuple[str, Value]] = []
        self.outputs: list[Output] = []  # of the ATen call being imported
        self.bounds = BoundsAnalysis(symbols.range_of)

    @property
    def out(self) -> Output:
        """The (first) result of the ATen call being imported."""
        return self.outputs[0]

    # ---- types and attributes

    def element_type(self, dtype: torch.dtype) -> ir.Type:
        return _ELEMENT_TYPES[dtype]()

    def type(self, sizes: Sequence[Size], dtype: torch.dtype) -> ir.Type:
        key = (tuple(size if isinstance(size, int) else _DYNAMIC for size in sizes), dtype)
        result = self._types.get(key)
        if result is None:
            result = self._types[key] = ir.RankedTensorType.get(list(key[0]), self.element_type(dtype))
        return result

    def exprs(self, sizes: Sequence[Size]) -> ir.Attribute:
        return ir.AffineMapAttr.get(self.symbols.exprs(sizes))

    def _sizes_attribute(self, sizes: Sequence[Size]) -> Optional[ir.Attribute]:
        return None if all(isinstance(size, int) for size in sizes) else self.exprs(sizes)

    # ---- leaves

    def literal(self, value: Any, dtype: torch.dtype) -> Value:
        """A small constant tensor from anything that torch.tensor takes."""
        # Numbers repeat; their text tells -0.0 from 0.0.
        key = (repr(value), dtype) if isinstance(value, (bool, int, float)) else None
        known = self._literals.get(key) if key is not None else None
        if known is None:
            known = self._dense(torch.as_tensor(value, dtype=dtype), dtype)
            if key is not None:
                self._literals[key] = known
        dense, sizes, bounds = known
        return Value(prim.constant(dense, results=[dense.type]), sizes, dtype, bounds=bounds)

    def _dense(self, tensor: torch.Tensor, dtype: torch.dtype) -> tuple[ir.Attribute, tuple[int, ...], Bounds]:
        """The attribute that holds a tensor, its sizes and the bounds of its elements."""
        sizes = tuple(tensor.shape)
        bits = (
            tensor.contiguous().view(torch.int16).numpy().view(np.uint16) if dtype is torch.bfloat16 else tensor.numpy()
        )
        dense = ir.DenseElementsAttr.get(
            np.ascontiguousarray(bits).reshape(-1), type=self.element_type(dtype), shape=list(sizes)
        )
        bounds = of_elements(tensor.reshape(-1).tolist()) if dtype not in FLOATS and dtype is not torch.bool else None
        return dense, sizes, bounds

    def scalar(self, value: Scalar, dtype: torch.dtype) -> Value:
        """A 0-d constant; integers wrap around as in a conversion."""
        if dtype not in FLOATS and dtype is not torch.bool:
            info = torch.iinfo(dtype)
            value = (int(value) - info.min) % (1 << info.bits) + info.min
        return self.literal(value, dtype)

    def full(self, value: Union[Scalar, Value], sizes: Sequence[Size], dtype: torch.dtype) -> Value:
        """A scalar, or 0-d value, everywhere."""
        scalar = self.convert(value, dtype) if isinstance(value, Value) else self.scalar(value, dtype)
        return self.broadcast(scalar, sizes)

    def size(self, size: Size) -> Value:
        """A size as a 0-d i64 value."""
        if isinstance(size, int):
            return self.scalar(size, torch.int64)
        value = prim.size(self.type((), torch.int64), self.exprs([size]))
        return Value(value, (), torch.int64, bounds=(size, size))

    def iota(self, sizes: Sequence[Size], dim: int, dtype: torch.dtype = torch.int64) -> Value:
        sizes = tuple(sizes)
        result = prim.iota(self.type(sizes, dtype), dim, sizes=self._sizes_attribute(sizes))
        return Value(result, sizes, dtype, bounds=(0, normalise(sizes[dim] - 1)) if dtype is torch.int64 else None)

    # ---- elementwise

    def unary(self, name: str, x: Value) -> Value:
        op = _op(name)
        return Value(op(x.ir, results=[x.ir.type]), x.sizes, x.dtype)

    def binary(self, name: str, x: Value, y: Value) -> Value:
        assert x.dtype == y.dtype and x.sizes == y.sizes, (name, x, y)
        op = _op(name)
        bounds = self.bounds.binary(name, x.bounds, y.bounds) if x.dtype is torch.int64 else None
        return Value(op(x.ir, y.ir, results=[x.ir.type]), x.sizes, x.dtype, bounds=bounds)

    def compare(self, comparison: str, x: Value, y: Value) -> Value:
        assert x.dtype == y.dtype and x.sizes == y.sizes, (comparison, x, y)
        type_ = self.type(x.sizes, torch.bool)
        return Value(prim.compare(prim.Comparison[comparison], x.ir, y.ir, results=[type_]), x.sizes, torch.bool)

    def select(self, predicate: Value, on_true: Value, on_false: Value) -> Value:
        assert on_true.dtype == on_false.dtype and predicate.sizes == on_true.sizes == on_false.sizes
        result = prim.select(predicate.ir, on_true.ir, on_false.ir, results=[on_true.ir.type])
        return Value(result, on_true.sizes, on_true.dtype, bounds=self.bounds.union(on_true.bounds, on_false.bounds))

    def convert(self, x: Value, dtype: torch.dtype) -> Value:
        if x.dtype == dtype:
            return x
        bounds = x.bounds if dtype is torch.int64 else None
        return Value(prim.convert(self.type(x.sizes, dtype), x.ir), x.sizes, dtype, bounds=bounds)

    def bitcast(self, x: Value, dtype: torch.dtype) -> Value:
        return Value(prim.bitcast(self.type(x.sizes, dtype), x.ir), x.sizes, dtype)

    def with_scalar(self, name: str, x: Value, scalar: Scalar) -> Value:
        """A binary op or comparison of a value and a scalar of its dtype."""
        y = self.full(scalar, x.sizes, x.dtype)
        return self.compare(name, x, y) if name in prim.Comparison.__members__ else self.binary(name, x, y)

    # ---- shapes

    def broadcast(self, x: Value, sizes: Sequence[Size]) -> Value:
        """Implicit broadcasting made explicit: aligned at the last dimension, dimensions of size 1 repeated."""
        sizes = tuple(sizes)
        if x.sizes == sizes:
            return x
        offset = len(sizes) - x.rank
        kept = [k for k in range(x.rank) if x.sizes[k] == sizes[offset + k]]
        for k in range(x.rank):
            assert k in kept or x.sizes[k] == 1, f"cannot broadcast {x.sizes} to {sizes}"
        if len(kept) != x.rank:
            x = self.reshape(x, [x.sizes[k] for k in kept])
        return self.broadcast_in_dim(x, sizes, [offset + k for k in kept])

    def broadcast_in_dim(self, x: Value, sizes: Sequence[Size], dims: Sequence[int]) -> Value:
        sizes = tuple(sizes)
        if x.sizes == sizes and list(dims) == list(range(len(sizes))):
            return x
        attribute = self._sizes_attribute(sizes)
        result = prim.broadcast(self.type(sizes, x.dtype), x.ir, list(dims), sizes=attribute)
        return Value(result, sizes, x.dtype, bounds=x.bounds)

    def reshape(self, x: Value, sizes: Sequence[Size]) -> Value:
        sizes = tuple(sizes)
        if x.sizes == sizes:
            return x
        base = x.base or x
        if base.sizes == sizes:
            return base
        result = prim.reshape(self.type(sizes, x.dtype), base.ir, sizes=self._sizes_attribute(sizes))
        return Value(result, sizes, x.dtype, base, x.bounds)

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        permutation = list(permutation)
        if permutation == list(range(x.rank)):
            return x
        sizes = tuple(x.sizes[k] for k in permutation)
        result = prim.transpose(x.ir, permutation, results=[self.type(sizes, x.dtype)])
        return Value(result, sizes, x.dtype, bounds=x.bounds)

    def slice(
        self, x: Value, starts: Sequence[Size], limits: Sequence[Size], strides: Sequence[int], sizes=None
    ) -> Value:
        if sizes is None:
            sizes = [_ceil(limit - start, stride) for start, limit, stride in zip(starts, limits, strides)]
        sizes = tuple(normalise(size) for size in sizes)
        if sizes == x.sizes and all(start == 0 for start in starts) and all(stride == 1 for stride in strides):
            return x
        result = prim.slice(self.type(sizes, x.dtype), x.ir, self.exprs(starts), self.exprs(limits), list(strides))
        return Value(result, sizes, x.dtype, bounds=x.bounds)

    def slice_dim(self, x: Value, dim: int, start: Size, limit: Size, stride: int = 1) -> Value:
        starts, limits, strides = [0] * x.rank, list(x.sizes), [1] * x.rank
        starts[dim], limits[dim], strides[dim] = start, limit, stride
        return self.slice(x, starts, limits, strides)

    def pad(self, x: Value, value: Union[Scalar, Value], low: Sequence[Size], high: Sequence[Size]) -> Value:
        if all(a == 0 for a in low) and all(a == 0 for a in high):
            return x
        fill = value if isinstance(value, Value) else self.scalar(value, x.dtype)
        sizes = tuple(normalise(a + size + b) for a, size, b in zip(low, x.sizes, high))
        result = prim.pad(self.type(sizes, x.dtype), x.ir, fill.ir, self.exprs(low), self.exprs(high))
        return Value(result, sizes, x.dtype)

    def concatenate(self, values: Sequence[Value], dim: int) -> Value:
        if len(values) == 1:
            return values[0]
        sizes = list(values[0].sizes)
        sizes[dim] = normalise(sum((value.sizes[dim] for value in values[1:]), values[0].sizes[dim]))
        result = prim.concatenate([value.ir for value in values], dim, results=[self.type(sizes, values[0].dtype)])
        return Value(result, tuple(sizes), values[0].dtype, bounds=self.bounds.union(*(v.bounds for v in values)))

    def reverse(self, x: Value, dims: Sequence[int]) -> Value:
        return Value(prim.reverse(x.ir, list(dims), results=[x.ir.type]), x.sizes, x.dtype) if dims else x

    def gather(self, x: Value, indices: Sequence[Value], dims: Sequence[int]) -> Value:
        """result[b..., p...] = x with dimension dims[k] at indices[k][b...]."""
        rest = [size for k, size in enumerate(x.sizes) if k not in dims]
        sizes = (*indices[0].sizes, *rest)
        result = prim.gather(x.ir, [index.ir for index in indices], list(dims), results=[self.type(sizes, x.dtype)])
        return Value(result, sizes, x.dtype, bounds=x.bounds)

    def scatter(self, x: Value, updates: Value, indices: Sequence[Value], dims: Sequence[int], mode: str) -> Value:
        """x with updates combined into it by mode; in their order if PyTorch is to be deterministic."""
        attribute = prim.ScatterMode[mode]
        result = prim.scatter(
            x.ir,
            updates.ir,
            [i.ir for i in indices],
            list(dims),
            attribute,
            ordered=torch.are_deterministic_algorithms_enabled(),
            results=[x.ir.type],
        )
        return Value(result, x.sizes, x.dtype)

    # ---- reductions

    def reduce(self, x: Value, combiner: str, dims: Sequence[int], keepdim: bool = False) -> Value:
        """Reduction over dims; over none it is the value itself."""
        dims = sorted(dims)
        if not dims:
            return x
        sizes = tuple(size for k, size in enumerate(x.sizes) if k not in dims)
        result = prim.reduce(x.ir, prim.Combiner[combiner], dims, results=[self.type(sizes, x.dtype)])
        value = Value(result, sizes, x.dtype)
        return self.reshape(value, [1 if k in dims else size for k, size in enumerate(x.sizes)]) if keepdim else value

    def arg_reduce(self, x: Value, extremum: str, dim: int) -> Value:
        sizes = tuple(size for k, size in enumerate(x.sizes) if k != dim)
        type_ = self.type(sizes, torch.int64)
        return Value(prim.arg_reduce(x.ir, prim.Extremum[extremum], dim, results=[type_]), sizes, torch.int64)

    def scan(self, x: Value, combiner: str, dim: int) -> Value:
        return Value(prim.scan(x.ir, prim.Combiner[combiner], dim, results=[x.ir.type]), x.sizes, x.dtype)

    def sort(self, x: Value, dim: int, descending: bool) -> tuple[Value, Value]:
        types = [x.ir.type, self.type(x.sizes, torch.int64)]
        op = prim.SortOp(x.ir, dim, descending, results=types)
        return Value(op.values, x.sizes, x.dtype), Value(op.indices, x.sizes, torch.int64)

    def reduce_window(self, x: Value, combiner: str, window, strides, dilations, low, high) -> Value:
        """A combination over windows; the lists have an entry for every dimension."""
        sizes = tuple(
            normalise(_floor(a + size + b - (w - 1) * d - 1, s) + 1)
            for size, w, s, d, a, b in zip(x.sizes, window, strides, dilations, low, high)
        )
        lists = [list(values) for values in (window, strides, dilations, low, high)]
        result = prim.reduce_window(self.type(sizes, x.dtype), x.ir, prim.Combiner[combiner], *lists)
        return Value(result, sizes, x.dtype)

    def dot(
        self, x: Value, y: Value, x_batch, y_batch, x_contract, y_contract, dtype: Optional[torch.dtype] = None
    ) -> Value:
        """dot_general with the accumulation type as the result's: f32 for f16 and bf16."""
        dtype = dtype or (torch.float32 if x.dtype in HALVES else x.dtype)
        sizes = [x.sizes[k] for k in x_batch]
        sizes += [size for k, size in enumerate(x.sizes) if k not in x_batch and k not in x_contract]
        sizes += [size for k, size in enumerate(y.sizes) if k not in y_batch and k not in y_contract]
        lists = [list(dims) for dims in (x_batch, y_batch, x_contract, y_contract)]
        tf32 = x.dtype == torch.float32 and torch.backends.cuda.matmul.fp32_precision == "tf32"
        return Value(prim.dot_general(self.type(sizes, dtype), x.ir, y.ir, *lists, tf32=tf32), tuple(sizes), dtype)

    def convolution(self, x: Value, weight: Value, strides, low, high, lhs_dilations, dilations, groups: int) -> Value:
        dtype = torch.float32 if x.dtype in HALVES else x.dtype
        spatial = []
        lists = (x.sizes[2:], weight.sizes[2:], strides, low, high, lhs_dilations, dilations)
        for size, k, s, a, b, ld, d in zip(*lists):
            dilated = (size - 1) * ld + 1
            spatial.append(normalise(_floor(a + dilated + b - (k - 1) * d - 1, s) + 1))
        sizes = (x.sizes[0], weight.sizes[0], *spatial)
        attributes = [list(values) for values in (strides, low, high, lhs_dilations, dilations)]
        cudnn: Any = torch.backends.cudnn
        tf32 = x.dtype == torch.float32 and cudnn.conv.fp32_precision == "tf32"
        result = prim.convolution(self.type(sizes, dtype), x.ir, weight.ir, *attributes, groups, tf32=tf32)
        return Value(result, sizes, dtype)

    # ---- runtime checks

    def check(self, condition: Value, message: str) -> None:
        """Makes the program fail with eager's error unless all of `condition` holds."""
        value = self.reduce(condition, "all", range(condition.rank))
        self.checks.append((message, value))


def _op(name: str) -> Any:
    """The op's builder function; names that are Python keywords end in an underscore there."""
    return getattr(prim, name + "_" if name in ("and", "or", "not") else name)


def _floor(a: Size, b: int) -> Size:
    return a if b == 1 else floor_divide(a, b)


def _ceil(a: Size, b: int) -> Size:
    return a if b == 1 else ceil_divide(a, b)
