"""The interpreter: functions, launches of kernels, and the loop over ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from mlir import ir

from . import contraction, elementwise, memory, reduction, shape
from .errors import ArgumentError, InterpreterError, InvalidModuleError
from .rules import Call, Rule
from .sizes import Symbols, bind_symbols, check_ranges, check_sizes, evaluate_all
from .values import Array, check_value, get_dtype, get_shape

RULES: dict[str, Rule] = elementwise.RULES | shape.RULES | reduction.RULES | contraction.RULES
"""The rule of each prim op, by its full name."""

_FUNCTIONS = ("func.func", "kernel.func")
_RETURNS = ("func.return", "kernel.return")


@dataclass
class _Frame:
    """A function in execution.

    Attributes:
        symbols: values of its index symbols.
        values: array of each SSA value so far.
        arena: bytes of its temporaries, where memory is planned.
    """

    symbols: Symbols
    values: dict[ir.Value, Array] = field(default_factory=dict)
    arena: Array = field(default_factory=lambda: np.zeros(0, np.uint8))

    def get(self, value: ir.Value) -> Array:
        """Returns the array of an SSA value."""
        if value not in self.values:
            raise InvalidModuleError("an output of a kernel is read; before memory is planned outputs have no value")
        return self.values[value]


class Interpreter:
    """Runs the functions of a `prim` or `fused` module on NumPy arrays.

    Every result of every op is checked against its type, so a pass that gets a static size wrong is found out.

    Args:
        module: a module, or a function in one.
    """

    def __init__(self, module: ir.Module | ir.OpView | ir.Operation) -> None:
        op = module.operation
        if op.name in _FUNCTIONS and op.parent is not None:
            op = op.parent.operation
        ops: list[ir.Operation] = [op]
        if op.name not in _FUNCTIONS:
            ops = [each.operation for each in op.regions[0].blocks[0].operations]
        self._functions = {_get_name(each): each for each in ops if each.name in _FUNCTIONS}

    def call(self, name: str, args: Sequence[Array], symbols: Sequence[int] | None = None) -> list[Array]:
        """Calls a function and returns its results.

        Args:
            name: symbol name of a `func.func` or `kernel.func`; of the latter only the inputs are passed.
            args: one array an argument. Where memory is planned, results are written to those that are outputs.
            symbols: values of the index symbols; absent, they are found from the shapes.

        Returns:
            All results, runtime checks (0-d i1 arrays at the end) included.

        Raises:
            ArgumentError: the arrays do not fit the arguments.
            ProgramError: the program did what an op's description calls an error.
            InvalidModuleError: the module is wrong, or holds an op that has no rule.
        """
        function = self._get_function(name)
        types = _get_argument_types(function)
        if len(args) != len(types):
            raise ArgumentError(f"@{name} takes {len(types)} arguments, {len(args)} were given")
        arrays = [np.asarray(arg, order="C") for arg in args]
        for number, (array, type) in enumerate(zip(arrays, types, strict=True)):
            _check_argument(number, array, type)
        sizes = _get_argument_attrs(function, "prim.sizes")[: len(types)]
        values = bind_symbols(sizes, [array.shape for array in arrays]) if symbols is None else dict(enumerate(symbols))
        for number, (array, attr) in enumerate(zip(arrays, sizes, strict=True)):
            if attr is not None:
                check_sizes(f"argument {number}", attr, array.shape, values)
        check_ranges(_get_attr(function, "prim.symbols"), values)
        return [np.array(value, order="C") for value in self._run(function, arrays, values)]

    def _get_function(self, name: str) -> ir.Operation:
        if name not in self._functions:
            known = ", ".join(f"@{each}" for each in self._functions)
            raise ArgumentError(f"the module has no function @{name}; it has {known or 'none'}")
        return self._functions[name]

    def _run(self, function: ir.Operation, args: Sequence[Array], symbols: Symbols) -> list[Array]:
        """Executes a function's body and returns what it returns."""
        frame = _Frame(symbols)
        arena = _get_attr(function, "kernel.arena")
        if arena is not None:
            frame.arena = np.zeros(evaluate_all(arena, symbols)[0], np.uint8)
        block = function.regions[0].blocks[0]
        frame.values.update(zip(block.arguments, args, strict=False))
        for op in _get_operations(block):
            try:
                operands = [] if op.name == "kernel.launch" else [frame.get(value) for value in op.operands]
                if op.name in _RETURNS:
                    return operands
                results = self._execute(op, operands, frame)
                for value, result in zip(op.results, results, strict=True):
                    if op.name.startswith("prim."):
                        check_value(result, value.type)
                    frame.values[value] = result
            except InterpreterError as error:
                if error.location is not None:
                    raise
                raise type(error)(error.message, str(op.location)) from None
        raise InvalidModuleError("the function does not return", str(function.location))

    def _execute(self, op: ir.Operation, operands: Sequence[Array], frame: _Frame) -> Sequence[Array]:
        """Executes one op and returns its results."""
        call = Call(op, frame.symbols)
        if op.name in RULES:
            results = RULES[op.name](call, operands)
            return [np.asarray(each, order="C") for each in (results if isinstance(results, tuple) else (results,))]
        if op.name in _HOST_RULES:
            return _HOST_RULES[op.name](self, call, operands, frame)
        raise InvalidModuleError(f"the reference interpreter has no rule for {op.name}")

    def _launch(self, call: Call, operands: Sequence[Array], frame: _Frame) -> list[Array]:
        """`kernel.launch`: runs the kernel and, where it has destinations, writes the outputs there."""
        op = call.op
        kernel = self._get_function(ir.FlatSymbolRefAttr(op.attributes["kernel"]).value)
        ins_count = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])[0]
        ins = [frame.get(value) for value in list(op.operands)[:ins_count]]
        destinations = list(op.operands)[ins_count:]
        symbols = dict(enumerate(call.exprs("symbols")))
        sizes, strides = _get_argument_attrs(kernel, "prim.sizes"), _get_argument_attrs(kernel, "kernel.strides")
        types = [argument.type for argument in kernel.regions[0].blocks[0].arguments]

        def check(what: str, number: int, array: Array) -> None:
            check_value(array, types[number])
            attr = sizes[number]
            if attr is not None:
                try:
                    check_sizes(what, attr, array.shape, symbols)
                except ArgumentError as error:
                    raise InvalidModuleError(error.message) from None

        for number, array in enumerate(ins):
            check(f"input {number}", number, array)
        outs = self._run(kernel, ins, symbols)
        results = []
        for number, array in enumerate(outs):
            check(f"output {number}", ins_count + number, array)
            if destinations:
                array = _write(array, frame.get(destinations[number]))
                frame.values[destinations[number]] = array
            elif (layout := strides[ins_count + number]) is not None:
                array = memory.lay_out(array, evaluate_all(layout, symbols))
            else:
                array = np.array(array, order="C")  # memory of its own, though the kernel may return an argument
            results.append(array)
        return results

    def _call(self, call: Call, operands: Sequence[Array], frame: _Frame) -> list[Array]:
        """`func.call`."""
        return self.call(ir.FlatSymbolRefAttr(call.op.attributes["callee"]).value, operands)


HostRule = Callable[[Interpreter, Call, Sequence[Array], _Frame], Sequence[Array]]

_HOST_RULES: dict[str, HostRule] = {
    "kernel.launch": Interpreter._launch,
    "kernel.view": lambda interpreter, call, operands, frame: [memory.view(call, operands)],
    "kernel.alloc": lambda interpreter, call, operands, frame: [memory.alloc(call, frame.arena)],
    "kernel.symbol": lambda interpreter, call, operands, frame: [np.array(frame.symbols[call.integer("number")])],
    "func.call": Interpreter._call,
}


def run(module: ir.Module | ir.OpView | ir.Operation, *arrays: Array, function: str | None = None) -> list[Array]:
    """Runs a function of a `prim` or `fused` module.

    Args:
        module: a module, or a function.
        arrays: one array an argument.
        function: symbol name; absent, the function that was passed, or `main` of a module.

    Returns:
        The function's results. See `Interpreter.call` for what is raised.
    """
    if function is None:
        function = _get_name(module.operation) if module.operation.name in _FUNCTIONS else "main"
    return Interpreter(module).call(function, arrays)


def _write(value: Array, destination: Array) -> Array:
    """Writes a kernel's output to its destination and returns it there, in the output's shape."""
    if destination.shape == value.shape:
        destination[...] = value
        return destination
    if destination.ndim != 1 or destination.size < value.size:
        raise InvalidModuleError(f"an output with shape {list(value.shape)} is written to {list(destination.shape)}")
    place = destination[: value.size].reshape(value.shape)
    place[...] = value
    return place


def _check_argument(number: int, array: Array, type: ir.Type) -> None:
    """Raises ArgumentError unless the array has the type's element type, rank and static sizes."""
    expected = get_shape(type)
    if array.dtype != get_dtype(type):
        raise ArgumentError(f"argument {number} has elements {array.dtype.name}, its type is {type}")
    if array.ndim != len(expected) or any(n not in (None, m) for n, m in zip(expected, array.shape, strict=True)):
        raise ArgumentError(f"argument {number} has shape {list(array.shape)}, its type is {type}")


def _get_operations(block: ir.Block) -> Iterator[ir.Operation]:
    for op in block.operations:
        yield op.operation


def _get_attr(op: ir.Operation, name: str) -> ir.Attribute | None:
    return op.attributes[name] if name in op.attributes else None


def _get_name(function: ir.Operation) -> str:
    return str(ir.StringAttr(function.attributes["sym_name"]).value)


def _get_argument_types(function: ir.Operation) -> list[ir.Type]:
    """Returns the types of what a caller passes: a kernel's outputs are not."""
    types = [argument.type for argument in function.regions[0].blocks[0].arguments]
    if function.name == "kernel.func":
        return types[: len(types) - int(ir.IntegerAttr(function.attributes["outs"]).value)]
    return types


def _get_argument_attrs(function: ir.Operation, name: str) -> list[ir.Attribute | None]:
    """Returns an attribute of each argument, None where it is absent."""
    count = len(function.regions[0].blocks[0].arguments)
    attrs = _get_attr(function, "arg_attrs")
    if attrs is None:
        return [None] * count
    dicts = [ir.DictAttr(each) for each in ir.ArrayAttr(attrs)]
    return [each[name] if name in each else None for each in dicts]
