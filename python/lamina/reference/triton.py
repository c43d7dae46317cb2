"""An interpreter of Triton IR: runs a host function whose kernels are `tt.func`s on NumPy arrays, one program after the other.

Every address that is read or written must lie in the argument that its pointer came from, so wrong masks and strides are
found out without a GPU. A block is an array, a scalar an array without dimensions, a pointer the element that it points at.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union

import ml_dtypes
import numpy as np
from mlir import ir

from . import elementwise
from .errors import InvalidModuleError, ProgramError
from .interpreter import Interpreter, _Frame, _get_name
from .memory import get_memory
from .rules import Call
from .sizes import evaluate_all
from .values import ELEMENT_TYPES, Array, convert, is_narrow


@dataclass
class Pointers:
    """Addresses in one argument.

    Attributes:
        memory: the argument's elements, in the order of their addresses.
        offsets: positions in it; they may be outside while nothing is read there.
        name: what to call the argument in messages.
    """

    memory: Array
    offsets: Array
    name: str

    def map(self, function: Callable[[Array], Array]) -> Pointers:
        return Pointers(self.memory, function(self.offsets), self.name)

    def check(self, mask: Array) -> None:
        """Raises ProgramError if an element where `mask` is true is outside the argument."""
        bad = mask & ((self.offsets < 0) | (self.offsets >= self.memory.size))
        if bad.any():
            at = self.offsets[bad].flat[0]
            raise ProgramError(f"element {at} of {self.name}, which has {self.memory.size}, is read or written")


@dataclass
class Descriptor:
    """A tensor of which blocks are read.

    Attributes:
        base: its first element.
        shape, strides: of the tensor, in elements.
    """

    base: Pointers
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def check(self) -> None:
        """Raises ProgramError for what the copy engine of a GPU does not take; memory is aligned as that of arguments."""
        size = self.base.memory.itemsize
        if self.strides[-1] != 1:
            raise ProgramError(f"the inner stride of a descriptor of {self.base.name} is {self.strides[-1]}")
        for what, elements in (("offset", int(self.base.offsets)), *(("stride", s) for s in self.strides[:-1])):
            if elements * size % 16:
                raise ProgramError(
                    f"the {what} of a descriptor of {self.base.name} is {elements} elements of {size} bytes"
                )


Value = Union[Array, Pointers]
Rule = Callable[["_Program", ir.Operation, Sequence[Any]], Any]


def _element(type: ir.Type) -> np.dtype[Any]:
    """dtype of a scalar or a block."""
    name = str(type.element_type if isinstance(type, ir.RankedTensorType) else type)
    return np.dtype(np.int64) if name == "index" else ELEMENT_TYPES[name]


def _shape(type: ir.Type) -> tuple[int, ...]:
    return tuple(type.shape) if isinstance(type, ir.RankedTensorType) else ()


def _integer(op: ir.Operation, name: str) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value)


def _on_offsets(value: Value, function: Callable[[Array], Array]) -> Value:
    return value.map(function) if isinstance(value, Pointers) else function(value)


# ---- blocks


def get_program_id(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`tt.get_program_id`; grids have one dimension."""
    return np.array(program.number if _integer(op, "axis") == 0 else 0, np.int32)


def make_range(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`tt.make_range`."""
    return np.arange(_integer(op, "start"), _integer(op, "end"), dtype=np.int32)


def splat(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Value:
    """`tt.splat`."""
    return _on_offsets(operands[0], lambda x: np.full(_shape(op.results[0].type), x, x.dtype))


def expand_dims(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Value:
    """`tt.expand_dims`."""
    return _on_offsets(operands[0], lambda x: np.expand_dims(x, _integer(op, "axis")))


def broadcast(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Value:
    """`tt.broadcast`."""
    return _on_offsets(operands[0], lambda x: np.broadcast_to(x, _shape(op.results[0].type)))


def trans(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Value:
    """`tt.trans`."""
    order = list(ir.DenseI32ArrayAttr(op.attributes["order"]))
    return _on_offsets(operands[0], lambda x: np.transpose(x, order))


def reshape(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Value:
    """`tt.reshape`."""
    return _on_offsets(operands[0], lambda x: np.reshape(x, _shape(op.results[0].type)))


def addptr(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Pointers:
    """`tt.addptr`."""
    pointers, offset = operands
    return pointers.map(lambda x: np.asarray(x + offset.astype(np.int64)))


def load(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`tt.load`; what is not read and has no other value is the largest integer, or NaN."""
    pointers = operands[0]
    mask = operands[1] if len(operands) > 1 else np.ones(pointers.offsets.shape, bool)
    pointers.check(mask)
    dtype = pointers.memory.dtype
    other = operands[2] if len(operands) > 2 else np.array(-1 if dtype.kind in "iu" else np.nan).astype(dtype)
    if not pointers.memory.size:
        return np.broadcast_to(other, mask.shape).astype(dtype)
    return np.asarray(np.where(mask, pointers.memory[np.where(mask, pointers.offsets, 0)], other).astype(dtype))


def make_tensor_descriptor(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Descriptor:
    """`tt.make_tensor_descriptor`."""
    base, *numbers = operands
    rank = len(numbers) // 2
    values = [int(number) for number in numbers]
    descriptor = Descriptor(base, tuple(values[:rank]), tuple(values[rank:]))
    descriptor.check()
    return descriptor


def descriptor_load(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`tt.descriptor_load`: zeros outside of the tensor."""
    descriptor, *starts = operands
    shape = _shape(op.results[0].type)
    offsets, mask = np.zeros(shape, np.int64), np.ones(shape, bool)
    for dim, (start, size, stride) in enumerate(zip(starts, descriptor.shape, descriptor.strides, strict=True)):
        places = (int(start) + np.arange(shape[dim])).reshape([-1 if k == dim else 1 for k in range(len(shape))])
        mask &= (places >= 0) & (places < size)
        offsets += places * stride
    pointers = descriptor.base.map(lambda x: x + offsets)
    pointers.check(mask)
    if not mask.any():
        return np.zeros(shape, pointers.memory.dtype)
    read = pointers.memory[np.where(mask, pointers.offsets, 0)]
    return np.where(mask, read, np.zeros((), read.dtype)).astype(read.dtype)


def store(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> list[Any]:
    """`tt.store`; no two elements may go to one address."""
    pointers, value = operands[:2]
    mask = operands[2] if len(operands) > 2 else np.ones(pointers.offsets.shape, bool)
    pointers.check(mask)
    places = pointers.offsets[mask]
    if np.unique(places).size != places.size:
        raise ProgramError(f"elements of {pointers.name} are written twice")
    pointers.memory[places] = value[mask]
    return []


_ATOMICS = {4: np.add, 5: np.add, 6: np.maximum, 7: np.minimum}


def atomic_rmw(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`tt.atomic_rmw`: in the order of the elements; what a masked one gives is as in `load`."""
    pointers, value = operands[:2]
    mask = operands[2] if len(operands) > 2 else np.ones(pointers.offsets.shape, bool)
    function = _ATOMICS.get(_integer(op, "atomic_rmw_op"))
    if function is None:
        raise InvalidModuleError(f"the interpreter does not know this operation: {op}")
    pointers.check(mask)
    dtype = pointers.memory.dtype
    old = np.full(mask.shape, np.array(-1 if dtype.kind in "iu" else np.nan).astype(dtype), dtype)
    with np.errstate(all="ignore"):
        if not any(True for _ in op.results[0].uses):
            function.at(pointers.memory, pointers.offsets[mask], value[mask])
            return old
        for place in zip(*np.nonzero(mask), strict=True):
            at = pointers.offsets[place]
            old[place] = pointers.memory[at]
            pointers.memory[at] = function(pointers.memory[at], value[place])
    return old


def reduce(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> list[Array]:
    """`tt.reduce`: halves are combined until one element is left, as good an order as any."""
    axis, body = _integer(op, "axis"), op.regions[0].blocks[0]
    values = [np.moveaxis(x, axis, 0) for x in operands]
    while len(values[0]) > 1:
        half = len(values[0]) // 2
        values = program.run(body, [*(x[:half] for x in values), *(x[half:] for x in values)])
    return [np.asarray(x[0]) for x in values]


def scan(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> list[Array]:
    """`tt.scan`: at each doubling of the distance, elements are combined with those that far before them."""
    if ir.BoolAttr(op.attributes["reverse"]).value:
        raise InvalidModuleError("the interpreter does not know tt.scan from the end")
    axis, body = _integer(op, "axis"), op.regions[0].blocks[0]
    values = [np.moveaxis(x, axis, 0) for x in operands]
    distance = 1
    while distance < len(values[0]):
        combined = program.run(body, [*(x[:-distance] for x in values), *(x[distance:] for x in values)])
        values = [np.concatenate([x[:distance], y]) for x, y in zip(values, combined, strict=True)]
        distance *= 2
    return [np.moveaxis(x, 0, axis) for x in values]


def dot(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`tt.dot`: products of f16 and bf16 are exact in the accumulator's type; tf32 operands are rounded to 10 bits."""
    a, b, c = operands
    if "inputPrecision" in op.attributes:
        if (precision := ir.IntegerAttr(op.attributes["inputPrecision"]).value) != 0:
            raise InvalidModuleError(f"the interpreter does not know the input precision {precision} of tt.dot")
        a, b = _round_to_tf32(a), _round_to_tf32(b)
    with np.errstate(all="ignore"):
        return np.asarray(a.astype(c.dtype) @ b.astype(c.dtype) + c)


def _round_to_tf32(values: Array) -> Array:
    """f32 with 10 bits after the point, to nearest, ties away from zero; infinities and NaN stay."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = ((bits + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def bitcast(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`tt.bitcast`."""
    return np.ascontiguousarray(operands[0]).view(_element(op.results[0].type)).reshape(operands[0].shape)


_DEVICE_NAMES = {"rint": "round", "fmod": "rem"}


def extern_elementwise(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`tt.extern_elementwise`: a function of libdevice, of the same name as in prim but for a few."""
    symbol = ir.StringAttr(op.attributes["symbol"]).value
    match = re.fullmatch(r"__nv_(\w+?)(f?)", symbol) if symbol != "__nv_erf" else re.fullmatch(r"__nv_(erf)()", symbol)
    name = _DEVICE_NAMES.get(match[1], match[1]) if match else symbol
    function = (elementwise.UNARY | elementwise.BINARY).get(name)
    if function is None or (operands[0].dtype == np.float32) != bool(match and match[2]):
        raise InvalidModuleError(f"the interpreter does not know {symbol} of {operands[0].dtype}")
    return elementwise.apply(function, *operands)


# ---- arith and math


def constant(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`arith.constant`: a scalar, or a block whose elements are equal."""
    attr, type = op.attributes["value"], op.results[0].type
    if isinstance(attr, ir.DenseElementsAttr):
        attr = ir.DenseElementsAttr(attr).get_splat_value()
    dtype = _element(type)
    number = attr.value
    if dtype.kind == "b":
        number = bool(number)
    elif dtype.kind == "i":
        number = np.array(int(number) & (2 ** (8 * dtype.itemsize) - 1), f"u{dtype.itemsize}").astype(dtype)
    return np.full(_shape(type), number, dtype)


def _unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function on the operands' bits as unsigned integers."""

    def on_bits(*operands: Array) -> Array:
        if operands[0].dtype == np.bool_:
            result = function(*(x.astype(np.uint8) for x in operands))
            return result if result.dtype == np.bool_ else result.astype(bool)
        dtype = operands[0].dtype
        result = np.asarray(function(*(x.astype(f"u{dtype.itemsize}") for x in operands)))
        return result if result.dtype == np.bool_ else result.astype(dtype)

    return on_bits


def _quotient(x: Array, y: Array) -> Array:
    """Truncated; a zero divisor, which a GPU does not trap on, gives 0."""
    return np.where(y == 0, 0, elementwise.divide(x, np.where(y == 0, 1, y).astype(y.dtype))).astype(x.dtype)


def _remainder(x: Array, y: Array) -> Array:
    return np.where(y == 0, 0, np.fmod(x, np.where(y == 0, 1, y).astype(y.dtype))).astype(x.dtype)


def _ceil_quotient(x: Array, y: Array) -> Array:
    return -((-x) // np.where(y == 0, 1, y)).astype(x.dtype)


def _number_or_other(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: np.where(np.isnan(x), y, np.where(np.isnan(y), x, function(x, y)))


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.maximumf": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.maxnumf": np.fmax,
    "arith.minnumf": np.fmin,
    "tt.precise_divf": np.divide,
    "tt.precise_sqrt": np.sqrt,
    "math.sqrt": np.sqrt,
    "math.exp2": np.exp2,
    "math.absf": np.abs,
    "math.ceil": np.ceil,
    "math.floor": np.floor,
    "math.absi": np.abs,
    "arith.addi": np.add,
    "arith.subi": np.subtract,
    "arith.muli": np.multiply,
    "arith.divsi": _quotient,
    "arith.remsi": _remainder,
    "arith.ceildivsi": _ceil_quotient,
    "arith.floordivsi": lambda x, y: x // np.where(y == 0, 1, y).astype(y.dtype),
    "arith.divui": _unsigned(_quotient),
    "arith.remui": _unsigned(_remainder),
    "arith.ceildivui": _unsigned(lambda x, y: _quotient(x, y) + (_remainder(x, y) != 0).astype(x.dtype)),
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
    "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
    "arith.shli": np.left_shift,
    "arith.shrsi": np.right_shift,
    "arith.shrui": _unsigned(np.right_shift),
    "arith.select": np.where,
}

_INT_PREDICATES = (
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
    _unsigned(np.less),
    _unsigned(np.less_equal),
    _unsigned(np.greater),
    _unsigned(np.greater_equal),
)
_ORDERED = (np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal)


def _apply(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """An op that is a function of its operands' elements."""
    with np.errstate(all="ignore"):
        result = np.asarray(_FUNCTIONS[op.name](*operands))
    return result.astype(operands[-1].dtype)


def compare_integers(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`arith.cmpi`."""
    predicate, (x, y) = _integer(op, "predicate"), operands
    if x.dtype == np.bool_ and 2 <= predicate < 6:  # true is -1 where it has a sign
        x, y = -x.astype(np.int8), -y.astype(np.int8)
    return np.asarray(_INT_PREDICATES[predicate](x, y))


def compare_floats(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """`arith.cmpf`: predicates 1 to 7 are false where an operand is NaN, 8 to 14 true."""
    predicate, (x, y) = _integer(op, "predicate"), operands
    unordered = np.isnan(x) | np.isnan(y)
    if predicate in (0, 15):
        return np.full(x.shape, predicate == 15)
    if predicate in (7, 14):
        return unordered if predicate == 14 else ~unordered
    result = _ORDERED[(predicate - 1) % 7](x, y)
    return np.asarray(result & ~unordered if predicate < 7 else result | unordered)


def convert_elements(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Array:
    """Conversions: of integers by their bits, of floats by value."""
    (x,), dtype = operands, _element(op.results[0].type)
    if op.name in ("arith.extui", "arith.uitofp") and x.dtype != np.bool_:
        x = x.astype(f"u{x.dtype.itemsize}")
    if op.name in ("arith.extsi", "arith.sitofp") and x.dtype == np.bool_:
        x = -x.astype(np.int8)
    if op.name == "arith.trunci" and dtype == np.bool_:
        return np.asarray(x & 1 != 0)
    if is_narrow(dtype) and x.dtype == np.float64:
        return x.astype(dtype) if dtype == np.float16 else x.astype(ml_dtypes.bfloat16)
    return convert(np.asarray(x), dtype)


# ---- control flow


def for_loop(program: _Program, op: ir.Operation, operands: Sequence[Any]) -> Sequence[Any]:
    """`scf.for`."""
    low, high, step, *values = operands
    for i in range(int(low), int(high), int(step)):
        values = program.run(op.regions[0].blocks[0], [np.array(i, low.dtype), *values])
    return values


RULES: dict[str, Rule] = {
    "tt.get_program_id": get_program_id,
    "tt.make_range": make_range,
    "tt.splat": splat,
    "tt.expand_dims": expand_dims,
    "tt.broadcast": broadcast,
    "tt.trans": trans,
    "tt.reshape": reshape,
    "tt.addptr": addptr,
    "tt.load": load,
    "tt.make_tensor_descriptor": make_tensor_descriptor,
    "tt.descriptor_load": descriptor_load,
    "tt.store": store,
    "tt.atomic_rmw": atomic_rmw,
    "tt.reduce": reduce,
    "tt.scan": scan,
    "tt.dot": dot,
    "tt.bitcast": bitcast,
    "tt.extern_elementwise": extern_elementwise,
    "arith.constant": constant,
    "arith.cmpi": compare_integers,
    "arith.cmpf": compare_floats,
    **{
        f"arith.{name}": convert_elements
        for name in "extf truncf extsi extui trunci sitofp uitofp fptosi fptoui index_cast".split()
    },
    **dict.fromkeys(_FUNCTIONS, _apply),
    "scf.for": for_loop,
}
"""The rule of each op, by its full name."""

_TERMINATORS = ("tt.return", "tt.reduce.return", "tt.scan.return", "scf.yield")


class _Program:
    """One program of a kernel."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.values: dict[ir.Value, Union[Value, Descriptor]] = {}

    def run(self, block: ir.Block, arguments: Sequence[Any]) -> list[Any]:
        """Executes a block and returns the operands of its terminator."""
        self.values.update(zip(block.arguments, arguments, strict=True))
        for view in block.operations:
            op = view.operation
            operands = [self.values[value] for value in op.operands]
            if op.name in _TERMINATORS:
                return operands
            if op.name not in RULES:
                raise InvalidModuleError(f"the interpreter of Triton IR has no rule for {op.name}", str(op.location))
            results = RULES[op.name](self, op, operands)
            if not isinstance(results, (list, tuple)):
                results = [results]
            for value, result in zip(op.results, results, strict=True):
                self.values[value] = result
        raise InvalidModuleError("the block has no terminator")


def launch(function: ir.Operation, arrays: Sequence[Array], symbols: Sequence[int], programs: int) -> None:
    """Runs all programs of a kernel.

    Args:
        function: a `tt.func`.
        arrays: memory of each pointer argument; dimensions and strides are of no matter.
        symbols: values of the scalar arguments.
        programs: size of the grid.

    Raises:
        ProgramError: an address outside an argument, or one that is written twice by one store.
        InvalidModuleError: an op that has no rule.
    """
    block = function.regions[0].blocks[0]
    arguments: list[Value] = [Pointers(_flatten(array), np.array(0), f"argument {i}") for i, array in enumerate(arrays)]
    for value, symbol in zip(list(block.arguments)[len(arrays) :], symbols, strict=False):
        arguments.append(np.array(symbol, _element(value.type)))
    if len(arguments) != len(block.arguments):
        raise InvalidModuleError(f"{len(block.arguments)} arguments are needed, {len(arguments)} are given")
    for number in range(programs):
        _Program(number).run(block, arguments)


def _flatten(array: Array) -> Array:
    """The elements between the first and the last of an array, in the order of their addresses; booleans as bytes."""
    dtype = np.dtype(np.int8) if array.dtype == np.bool_ else array.dtype
    if not array.size:
        return np.zeros(0, dtype)
    memory, start = get_memory(array)
    count = 1 + sum(
        (size - 1) * (stride // array.itemsize) for size, stride in zip(array.shape, array.strides, strict=True)
    )
    return np.ndarray((count,), dtype, memory, start)


class TritonInterpreter(Interpreter):
    """Runs the host functions of a module whose memory is planned and whose kernels are `tt.func`s."""

    def __init__(self, module: ir.Module | ir.OpView | ir.Operation) -> None:
        super().__init__(module)
        ops = [each.operation for each in module.operation.regions[0].blocks[0].operations]
        self._kernels = {_get_name(each): each for each in ops if each.name == "tt.func"}

    def _execute(self, op: ir.Operation, operands: Sequence[Array], frame: _Frame) -> Sequence[Array]:
        if op.name != "kernel.launch":
            return super()._execute(op, operands, frame)
        name = ir.FlatSymbolRefAttr(op.attributes["kernel"]).value
        if name not in self._kernels:
            raise InvalidModuleError(f"@{name} is no Triton kernel")
        kernel = self._kernels[name]
        symbols = Call(op, frame.symbols).exprs("symbols")
        arrays = [frame.get(value) for value in op.operands]
        if len(arrays) == ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]:
            raise InvalidModuleError("memory is not planned: the launch has no destinations")
        programs = int(np.prod(evaluate_all(kernel.attributes["kernel.grid"], dict(enumerate(symbols)))))
        launch(kernel, arrays, symbols, programs)
        return arrays[len(arrays) - len(op.results) :]
